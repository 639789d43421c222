BEGIN
{
	printf("%@d", 1);	/* error: D_PRINTF_AGG_CONV */
}
