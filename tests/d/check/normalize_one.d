BEGIN
{
	@a = count();
	normalize(@a);	/* error: D_PROTO_LEN */
}
