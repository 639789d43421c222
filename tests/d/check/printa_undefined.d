BEGIN
{
	printa(@nosuch);	/* error: D_IDENT_UNDEF */
}
