BEGIN
{
	printf("%f", 1);	/* error: D_PRINTF_ARG_TYPE */
}
