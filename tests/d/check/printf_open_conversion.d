BEGIN
{
	printf("%");	/* error: D_SYNTAX */
}
