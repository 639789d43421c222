BEGIN
{
	arg0 = 1;	/* error: D_OP_WRITE */
}
