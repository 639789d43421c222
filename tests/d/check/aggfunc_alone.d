BEGIN
{
	count();	/* error: D_CG_EXPR */
}
