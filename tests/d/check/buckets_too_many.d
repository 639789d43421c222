BEGIN
{
	@a = lquantize(1, 0, 60000);	/* error: D_UNKNOWN */
}
