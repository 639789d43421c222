BEGIN
{
	@a = sum();	/* error: D_PROTO_LEN */
}
