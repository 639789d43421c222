BEGIN
{
	trace("x" % 2);	/* error: D_OP_INT */
}
