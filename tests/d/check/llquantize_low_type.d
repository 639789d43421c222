BEGIN
{
	@a = llquantize(1, 10, pid, 6, 20);	/* error: D_LLQUANT_LMAGTYPE */
}
