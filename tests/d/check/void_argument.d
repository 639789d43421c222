BEGIN
{
	trace(strlen(printf("x")));	/* error: D_PROTO_ARG */
}
