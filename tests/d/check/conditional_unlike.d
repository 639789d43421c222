BEGIN
{
	trace(pid ? 1 : "x");	/* error: D_OP_INCOMPAT */
}
