BEGIN
{
	trace(rand());	/* error: D_UNKNOWN */
}
