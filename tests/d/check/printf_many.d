BEGIN
{
	printf("%d", 1, 2);	/* error: D_PRINTF_ARG_EXTRA */
}
