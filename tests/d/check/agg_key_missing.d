BEGIN
{
	@a[1] = count();
	@a = count();	/* error: D_PROTO_LEN */
}
