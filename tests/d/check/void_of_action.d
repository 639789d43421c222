BEGIN
{
	(void)printf("x");	/* error: D_CG_EXPR */
}
