BEGIN
{
	trace(cwd);	/* error: D_UNKNOWN */
}
