BEGIN
{
	count();	/* error: D_FUNC_IDKIND */
}
