BEGIN
{
	trace(pid.x);	/* error: D_OP_SOU */
}
