struct bits { int a : 3; int b : 5; };
BEGIN
{
	trace(sizeof (((struct bits *)arg0)->a));	/* error: D_SIZEOF_BITFIELD */
}
