struct point { int x, y; char large[2000]; };
BEGIN
{
	trace(*(struct point *)arg0);	/* error: D_UNKNOWN */
}
