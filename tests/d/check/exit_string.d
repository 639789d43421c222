BEGIN
{
	exit("x");	/* error: D_PROTO_ARG */
}
