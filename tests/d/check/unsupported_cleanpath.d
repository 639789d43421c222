BEGIN
{
	trace(cleanpath("/a/../b"));	/* error: D_UNKNOWN */
}
