struct point { int x, y; };
BEGIN
{
	trace(((struct point *)arg0)->z);	/* error: D_TYPE_MEMBER */
}
