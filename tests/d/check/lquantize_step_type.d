BEGIN
{
	@a = lquantize(1, 0, 10, pid);	/* error: D_LQUANT_STEPTYPE */
}
