BEGIN
{
	trace((void *)arg0 + 1);	/* error: D_OP_INCOMPAT */
}
