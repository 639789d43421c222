struct known { int a; };
struct unknown;
BEGIN
{
	print((struct known *)arg0);
	print((void *)arg0);			/* error: D_PRINT_SIZE */
	print((struct unknown *)arg0);		/* error: D_PRINT_SIZE */
}
