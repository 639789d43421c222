BEGIN
{
	trace(*(void *)arg0);	/* error: D_DEREF_VOID */
}
