BEGIN
{
	@a = 1;	/* error: D_AGG_FUNC */
}
