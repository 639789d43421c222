BEGIN
{
	printf("%Y", pid);	/* error: D_PRINTF_ARG_TYPE */
}
