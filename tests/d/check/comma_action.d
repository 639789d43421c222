BEGIN
{
	printf("a"), 1;	/* error: D_OP_ACT */
}
