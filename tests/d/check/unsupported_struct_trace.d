struct point { int x, y; };
BEGIN
{
	trace(*(struct point *)arg0);	/* error: D_UNKNOWN */
}
