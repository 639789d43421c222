BEGIN
{
	@a = count();
	normalize(@a);	/* error: D_NORMALIZE_PROTO */
}
