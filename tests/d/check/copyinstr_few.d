BEGIN
{
	trace(copyinstr());	/* error: D_PROTO_LEN */
}
