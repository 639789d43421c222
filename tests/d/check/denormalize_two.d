BEGIN
{
	@a = count();
	denormalize(@a, 2);	/* error: D_NORMALIZE_PROTO */
}
