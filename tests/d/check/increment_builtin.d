BEGIN
{
	timestamp++;	/* error: D_OP_WRITE */
}
