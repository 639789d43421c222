BEGIN
{
	trace(zonename);	/* error: D_UNKNOWN */
}
