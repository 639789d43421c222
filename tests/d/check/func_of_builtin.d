BEGIN
{
	pid(1);	/* error: D_FUNC_IDKIND */
}
