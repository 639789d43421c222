BEGIN
{
	printf("");	/* error: D_PRINTF_FMT_EMPTY */
}
