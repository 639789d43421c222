/* Assigning zero to an element gives its memory back: there is always room for the next.
   @@options: -q -x dynvarsize=4k */
int total;
BEGIN
{
	i = 0;
}
tick-1ms
{
	a[i] = i + 1;
	total += a[i];
	a[i] = 0;
	i++;
}
tick-1ms
/i == 20/
{
	printf("%d", total);
	exit(0);
}
/* @@output
210
*/
