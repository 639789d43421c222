BEGIN
{
	@a[ustack()] = count();	/* error: D_UNKNOWN */
}
