BEGIN
{
	printf("%.*s", "x", "y");	/* error: D_PRINTF_DYN_TYPE */
}
