BEGIN
{
	trace((int *)arg0 - (char *)arg1);	/* error: D_OP_INCOMPAT */
}
