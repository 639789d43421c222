BEGIN
{
	printf(execname);	/* error: D_PRINTF_ARG_FMT */
}
