/*
 * A constant that is shifted out of an int is a long, as in the DTraces; one that is no constant stays what C says.
 */
BEGIN
{
	printf("%x %x %d\n", 1 << 63, (1 << 63) - 1, 1 << 32);
	printf("%d %d\n", sizeof(1 << 31), sizeof(1 << 32));
	printf("%d %d %d\n", -1 << 40, 3 << 30, 1 << 4);
	this->n = 1;
	printf("%d\n", sizeof(this->n << 32));
	exit(0);
}
/* @@output
8000000000000000 7fffffffffffffff 4294967296
4 8
-1099511627776 -1073741824 16
4
*/
