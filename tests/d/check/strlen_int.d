BEGIN
{
	trace(strlen(arg0));	/* error: D_PROTO_ARG */
}
