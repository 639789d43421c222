BEGIN
{
	trace(1 / 0);	/* error: D_DIV_ZERO */
}
