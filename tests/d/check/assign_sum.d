BEGIN
{
	x = 1;
	(x + 1) = 2;	/* error: D_OP_LVAL */
}
