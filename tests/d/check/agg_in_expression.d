BEGIN
{
	@a = count();
	trace(@a + 1);	/* error: D_OP_INCOMPAT */
}
