BEGIN
{
	trace(copyinstr("x"));	/* error: D_PROTO_ARG */
}
