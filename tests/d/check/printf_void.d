BEGIN
{
	printf("%d", trace(1));	/* error: D_PRINTF_ARG_TYPE */
}
