BEGIN
{
	trace(zonename);	/* error: D_UNKNOWN */
	trace(ipl);		/* error: D_UNKNOWN */
}
