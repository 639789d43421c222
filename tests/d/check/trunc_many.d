BEGIN
{
	@a = count();
	trunc(@a, 1, 2);	/* error: D_PROTO_LEN */
}
