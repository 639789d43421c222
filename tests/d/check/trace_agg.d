BEGIN
{
	@a = count();
	trace(@a);	/* error: D_TRACE_DYN */
}
