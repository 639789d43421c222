BEGIN
{
	pid = 1;	/* error: D_OP_WRITE */
}
