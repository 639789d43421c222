BEGIN
{
	printf("x", 1);	/* error: D_PRINTF_ARG_EXTRA */
}
