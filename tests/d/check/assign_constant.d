BEGIN
{
	1 = 2;	/* error: D_OP_LVAL */
}
