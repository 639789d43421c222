/* %s prints a string, the precision limits how much of it. */
BEGIN
{
	printf("[%s][%5s][%-5s][%.2s][%5.1s]", "abc", "abc", "abc", "abc", "abc");
	exit(0);
}
/* @@output
[abc][  abc][abc  ][ab][    a]
*/
