/* timestamp is the same in the whole firing, and later at the next one. */
uint64_t last;
int ok, n;
tick-1ms
{
	ok += timestamp == timestamp;
	ok += timestamp > last;
	last = timestamp;
	n++;
}
tick-1ms
/n == 5/
{
	printf("%d", ok);
	exit(0);
}
/* @@output
10
*/
