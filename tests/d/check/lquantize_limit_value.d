BEGIN
{
	@a = lquantize(1, 0, 20000000000);	/* error: D_LQUANT_LIMVAL */
}
