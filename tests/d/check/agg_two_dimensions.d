BEGIN
{
	@a[1][2] = count();	/* error: D_AGG_MDIM */
}
