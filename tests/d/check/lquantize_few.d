BEGIN
{
	@a = lquantize(1, 2);	/* error: D_PROTO_LEN */
}
