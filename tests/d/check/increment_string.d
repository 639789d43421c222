BEGIN
{
	s = "x";
	s++;	/* error: D_OP_SCALAR */
}
