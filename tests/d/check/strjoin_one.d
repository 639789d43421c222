BEGIN
{
	trace(strjoin("x"));	/* error: D_PROTO_LEN */
}
