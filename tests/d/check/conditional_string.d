BEGIN
{
	trace("x" ? 1 : 2);	/* error: D_OP_SCALAR */
}
