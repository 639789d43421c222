BEGIN
{
	s = "one";
	s = 1;	/* error: D_OP_INCOMPAT */
}
