BEGIN
{
	@a[1] = count();
	printa("%s %@d", @a);	/* error: D_PRINTF_ARG_TYPE */
}
