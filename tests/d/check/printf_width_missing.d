BEGIN
{
	printf("%*d");	/* error: D_PRINTF_DYN_PROTO */
}
