BEGIN
{
	x = y + 1;	/* error: D_IDENT_UNDEF */
}
