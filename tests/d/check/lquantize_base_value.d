BEGIN
{
	@a = lquantize(1, 10000000000, 20000000000);	/* error: D_LQUANT_BASEVAL */
}
