BEGIN
{
	1++;	/* error: D_OP_LVAL */
}
