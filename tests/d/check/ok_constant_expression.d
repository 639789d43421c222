BEGIN
{
	@a = lquantize(arg0, -(1 << 4), 2 * 8, sizeof (int));
	trace(1 / 2);
}
