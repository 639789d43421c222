/* ++ and -- before and behind a variable. */
BEGIN
{
	x = 5;
	y = x++;
	printf("%d %d ", x, y);
	y = ++x;
	printf("%d %d ", x, y);
	y = x--;
	printf("%d %d ", x, y);
	y = --x;
	printf("%d %d", x, y);
	exit(0);
}
/* @@output
6 5 7 7 6 7 5 5
*/
