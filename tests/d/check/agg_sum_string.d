BEGIN
{
	@a = sum("x");	/* error: D_AGG_SCALAR */
}
