BEGIN
{
	@a = count();
	denormalize(@a, 2);	/* error: D_PROTO_LEN */
}
