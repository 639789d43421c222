BEGIN
{
	pid ? printf("a") : printf("b");	/* error: D_OP_ACT */
}
