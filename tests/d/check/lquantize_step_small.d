BEGIN
{
	@a = lquantize(1, 0, 1000000, 1);	/* error: D_LQUANT_STEPSMALL */
}
