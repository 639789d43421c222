BEGIN
{
	tracemem(arg0, 16);	/* error: D_UNKNOWN */
}
