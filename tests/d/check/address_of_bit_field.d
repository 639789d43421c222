struct bits { int a : 3; int b : 5; };
BEGIN
{
	trace((uint64_t)&((struct bits *)arg0)->a);	/* error: D_ADDROF_BITFIELD */
}
