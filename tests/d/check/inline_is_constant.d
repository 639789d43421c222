inline int LIMIT = 3;
BEGIN
{
	LIMIT = 4;	/* error: D_OP_WRITE */
}
