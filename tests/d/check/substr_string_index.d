BEGIN
{
	trace(substr("x", "1"));	/* error: D_PROTO_ARG */
}
