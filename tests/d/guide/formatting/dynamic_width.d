/* * takes width or precision from the arguments; a negative width is a width to the left. */
BEGIN
{
	printf("[%*d][%-*d][%*d][%.*s][%*.*d]", 5, 42, 5, 42, -5, 42, 2, "abc", 6, 3, 7);
	exit(0);
}
/* @@output
[   42][42   ][42   ][ab][   007]
*/
