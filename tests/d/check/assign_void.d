BEGIN
{
	x = printf("x");	/* error: D_OP_INCOMPAT */
}
