struct point { int x, y; };
BEGIN
{
	trace(offsetof(struct point, z));	/* error: D_TYPE_MEMBER */
}
