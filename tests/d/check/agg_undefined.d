BEGIN
{
	trace(@nosuch);	/* error: D_IDENT_UNDEF */
}
