BEGIN
{
	@a = count();
	trunc(@a, "x");	/* error: D_TRUNC_SCALAR */
}
