BEGIN
{
	trace(*execname + "x");	/* error: D_OP_INCOMPAT */
}
