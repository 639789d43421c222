BEGIN
{
	trace(@nosuch);	/* error: D_TRACE_DYN */
}
