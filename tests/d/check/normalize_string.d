BEGIN
{
	@a = count();
	normalize(@a, "x");	/* error: D_NORMALIZE_SCALAR */
}
