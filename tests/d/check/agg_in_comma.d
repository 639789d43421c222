BEGIN
{
	@a = count(), 1;	/* error: D_CG_EXPR */
}
