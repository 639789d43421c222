BEGIN
{
	trace(1 << "x");	/* error: D_OP_INT */
}
