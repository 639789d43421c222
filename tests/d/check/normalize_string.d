BEGIN
{
	@a = count();
	normalize(@a, "x");	/* error: D_PROTO_ARG */
}
