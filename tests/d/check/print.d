BEGIN
{
	@a = count();
	print(@a);	/* error: D_PRINT_AGG */
}

BEGIN
{
	print((void)1);	/* error: D_PRINT_VOID */
}
