BEGIN
{
	@a = count();
	@a;	/* error: D_AGG_NULL */
}
