BEGIN
{
	@a = llquantize(1, pid, 0, 6, 20);	/* error: D_LLQUANT_FACTORTYPE */
}
