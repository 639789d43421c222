BEGIN
{
	@a = quantize(1, "x");	/* error: D_PROTO_ARG */
}
