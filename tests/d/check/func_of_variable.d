BEGIN
{
	x = 1;
	x(1);	/* error: D_FUNC_IDKIND */
}
