/* The conditional expression, nested and with strings. */
BEGIN
{
	i = 0;
	x = i == 0 ? "zero" : "non-zero";
	printf("%s ", x);
	c = 'd';
	h = (c >= '0' && c <= '9') ? c - '0' : (c >= 'a' && c <= 'z') ? c + 10 - 'a' : c + 10 - 'A';
	printf("%d", h);
	exit(0);
}
/* @@output
zero 13
*/
