BEGIN
{
	trace(arg0->x);	/* error: D_OP_PTR */
}
