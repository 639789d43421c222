BEGIN
{
	printf(1);	/* error: D_PRINTF_ARG_FMT */
}
