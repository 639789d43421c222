BEGIN
{
	printf("%Y", "x");	/* error: D_PRINTF_ARG_TYPE */
}
