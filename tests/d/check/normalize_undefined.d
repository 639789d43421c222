BEGIN
{
	normalize(@nosuch, 2);	/* error: D_IDENT_UNDEF */
}
