BEGIN
{
	trace(printf("x"));	/* error: D_TRACE_VOID */
}
