BEGIN
{
	printf(1);	/* error: D_PROTO_ARG */
}
