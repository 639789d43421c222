BEGIN
{
	@a = lquantize(1, 0, 10, 0);	/* error: D_LQUANT_STEPTYPE */
}
