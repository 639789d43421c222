BEGIN
{
	trace(~"x");	/* error: D_OP_INT */
}
