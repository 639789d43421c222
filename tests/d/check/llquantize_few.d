BEGIN
{
	@a = llquantize(1, 10, 0, 6);	/* error: D_PROTO_LEN */
}
