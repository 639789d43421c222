BEGIN
{
	printf("%d", execname);	/* error: D_PRINTF_ARG_TYPE */
}
