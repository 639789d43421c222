BEGIN
{
	trace("x" + "y");	/* error: D_OP_INCOMPAT */
}
