BEGIN
{
	printf("%x", "x");	/* error: D_PRINTF_ARG_TYPE */
}
