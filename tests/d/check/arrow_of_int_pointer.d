BEGIN
{
	trace(((int *)arg0)->x);	/* error: D_OP_SOU */
}
