BEGIN
{
	@a = lquantize(1, pid, 10);	/* error: D_LQUANT_BASETYPE */
}
