BEGIN
{
	x = nosuch(1);	/* error: D_FUNC_UNDEF */
}
