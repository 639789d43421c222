BEGIN
{
	printf("%*d", 1);	/* error: D_PRINTF_ARG_PROTO */
}
