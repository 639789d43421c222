BEGIN
{
	trunc(@nosuch);	/* error: D_IDENT_UNDEF */
}
