BEGIN
{
	@a = llquantize(1, 10, 0, 6, 5);
	@b = llquantize(1, 10, 0, 6, 1);
	@c = llquantize(1, 10, 0, 6, 0);	/* error: D_LLQUANT_STEPTYPE */
	@d = llquantize(1, 10, 0, 6, -5);	/* error: D_LLQUANT_STEPTYPE */
	@e = llquantize(1, 10, 0, 6, 6);	/* error: D_LLQUANT_STEPVAL */
}
