BEGIN
{
	trace(errno);	/* error: D_UNKNOWN */
}
