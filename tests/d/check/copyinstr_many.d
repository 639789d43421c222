BEGIN
{
	trace(copyinstr(arg0, 1, 2));	/* error: D_PROTO_LEN */
}
