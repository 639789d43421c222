BEGIN
{
	printf("%z", 1);	/* error: D_SYNTAX */
}
