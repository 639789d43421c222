/* substr(): part of a string; a negative index counts from the end. */
BEGIN
{
	printf("%s|%s|%s|%s|%s|%s", substr("abcdef", 2), substr("abcdef", 1, 3), substr("abcdef", -2), substr("abcdef", -4, 2), substr("abc", 3), substr("abc", 1, 0));
	exit(0);
}
/* @@output
cdef|bcd|ef|cd||
*/
