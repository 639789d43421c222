BEGIN
{
	@a[1] = count();
	printa("%d %d %@d", @a);	/* error: D_PRINTF_ARG_PROTO */
}
