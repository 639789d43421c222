BEGIN
{
	trace((int *)arg0 + (int *)arg1);	/* error: D_OP_INCOMPAT */
}
