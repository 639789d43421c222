BEGIN
{
	@a = lquantize(1, 0, 10);
	@a = lquantize(1, 0, 10, 2);	/* error: D_LQUANT_MATCHSTEP */
}
