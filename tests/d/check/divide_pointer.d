BEGIN
{
	trace((int *)arg0 / 2);	/* error: D_OP_ARITH */
}
