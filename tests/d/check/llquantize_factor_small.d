BEGIN
{
	@a = llquantize(1, 1, 0, 6, 20);	/* error: D_LLQUANT_FACTORVAL */
}
