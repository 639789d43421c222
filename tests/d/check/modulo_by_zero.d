BEGIN
{
	trace(pid % (3 - 3));	/* error: D_DIV_ZERO */
}
