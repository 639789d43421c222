BEGIN
{
	trace(lltostr("x"));	/* error: D_PROTO_ARG */
}
