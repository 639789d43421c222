BEGIN
{
	trace(pid[1]);	/* error: D_DEREF_NONPTR */
}
