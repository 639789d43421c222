/* lltostr(): an integer as text, in base 10 or another. */
BEGIN
{
	printf("%s %s %s %s %s", lltostr(0), lltostr(-12345), lltostr(255, 16), lltostr(255, 8), lltostr(5, 2));
	exit(0);
}
/* @@output
0 -12345 0xff 0377 101
*/
