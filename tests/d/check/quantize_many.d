BEGIN
{
	@a = quantize(1, 2, 3);	/* error: D_PROTO_LEN */
}
