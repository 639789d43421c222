BEGIN
{
	@a = llquantize(1, 10, 6, 3, 20);	/* error: D_LLQUANT_HMAGVAL */
}
