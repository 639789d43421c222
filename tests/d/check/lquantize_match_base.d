BEGIN
{
	@a = lquantize(1, 0, 10);
	@a = lquantize(1, 1, 11);	/* error: D_LQUANT_MATCHBASE */
}
