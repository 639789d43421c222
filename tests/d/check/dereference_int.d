BEGIN
{
	trace(*arg0);	/* error: D_DEREF_NONPTR */
}
