BEGIN
{
	trace(~(int *)arg0);	/* error: D_OP_INT */
}
