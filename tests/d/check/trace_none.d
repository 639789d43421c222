BEGIN
{
	trace();	/* error: D_PROTO_LEN */
}
