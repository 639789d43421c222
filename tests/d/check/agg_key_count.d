BEGIN
{
	@a[1] = count();
	@a[1, 2] = count();	/* error: D_PROTO_LEN */
}
