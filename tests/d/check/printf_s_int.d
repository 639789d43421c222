BEGIN
{
	printf("%s", arg0);	/* error: D_PRINTF_ARG_TYPE */
}
