BEGIN
{
	x = 1;
	x = "one";	/* error: D_OP_INCOMPAT */
}
