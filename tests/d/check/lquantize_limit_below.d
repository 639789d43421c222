BEGIN
{
	@a = lquantize(1, 10, 0);	/* error: D_LQUANT_MISMATCH */
}
