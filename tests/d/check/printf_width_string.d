BEGIN
{
	printf("%*d", "x", 1);	/* error: D_PRINTF_DYN_TYPE */
}
