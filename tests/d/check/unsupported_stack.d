BEGIN
{
	stack();	/* error: D_UNKNOWN */
}
