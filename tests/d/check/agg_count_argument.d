BEGIN
{
	@a = count(1);	/* error: D_PROTO_LEN */
}
