BEGIN
{
	s = "x";
	s += 1;	/* error: D_OP_INCOMPAT */
}
