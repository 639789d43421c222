BEGIN
{
	x = 1;
	trace(x[1]);	/* error: D_DEREF_NONPTR */
}
