BEGIN
{
	trace(1, 2);	/* error: D_PROTO_LEN */
}
