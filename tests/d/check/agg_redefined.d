BEGIN
{
	@a = count();
	@a = sum(1);	/* error: D_AGG_REDEF */
}
