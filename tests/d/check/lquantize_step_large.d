BEGIN
{
	@a = lquantize(1, 0, 10, 20);	/* error: D_LQUANT_STEPLARGE */
}
