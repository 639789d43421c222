BEGIN
{
	clear(@nosuch);	/* error: D_IDENT_UNDEF */
}
