BEGIN
{
	trace(basename(arg0));	/* error: D_PROTO_ARG */
}
