BEGIN
{
	x = count();	/* error: D_OP_INCOMPAT */
}
