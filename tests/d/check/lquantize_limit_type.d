BEGIN
{
	@a = lquantize(1, 0, pid);	/* error: D_LQUANT_LIMTYPE */
}
