BEGIN
{
	trace(*execname);	/* error: D_DEREF_NONPTR */
}
