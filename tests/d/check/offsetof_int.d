BEGIN
{
	trace(offsetof(int, x));	/* error: D_OFFSETOF_TYPE */
}
