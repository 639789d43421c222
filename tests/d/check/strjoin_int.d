BEGIN
{
	trace(strjoin("x", 2));	/* error: D_PROTO_ARG */
}
