BEGIN
{
	@a = llquantize(1, 70000, 0, 6, 20);	/* error: D_LLQUANT_FACTORVAL */
}
