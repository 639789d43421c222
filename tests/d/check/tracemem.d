BEGIN
{
	tracemem("text", 16);	/* error: D_TRACEMEM_ADDR */
}

BEGIN
{
	tracemem(arg0, arg1);	/* error: D_TRACEMEM_SIZE */
}

BEGIN
{
	tracemem(arg0, 0);	/* error: D_TRACEMEM_SIZE */
}

BEGIN
{
	tracemem(arg0, 16, "x");	/* error: D_PROTO_ARG */
}

BEGIN
{
	tracemem(arg0, 16, 1, 2);	/* error: D_PROTO_LEN */
}

BEGIN
{
	tracemem(arg0, 1048576);	/* error: D_UNKNOWN */
}
