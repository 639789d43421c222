BEGIN
{
	trace(execname == 1);	/* error: D_OP_INCOMPAT */
}
