BEGIN
{
	printf("%.*s");	/* error: D_PRINTF_DYN_PROTO */
}
