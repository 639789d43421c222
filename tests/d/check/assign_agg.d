BEGIN
{
	@a = count();
	x = @a;	/* error: D_OP_INCOMPAT */
}
