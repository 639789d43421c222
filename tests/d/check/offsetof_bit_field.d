struct bits { int a : 3; int b : 5; };
BEGIN
{
	trace(offsetof(struct bits, b));	/* error: D_OFFSETOF_BITFIELD */
}
