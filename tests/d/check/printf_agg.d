BEGIN
{
	@a = count();
	printf("%d", @a);	/* error: D_PRINTF_ARG_TYPE */
}
