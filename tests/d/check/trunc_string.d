BEGIN
{
	@a = count();
	trunc(@a, "x");	/* error: D_PROTO_ARG */
}
