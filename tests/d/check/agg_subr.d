BEGIN
{
	@a = strlen("x");	/* error: D_AGG_FUNC */
}
