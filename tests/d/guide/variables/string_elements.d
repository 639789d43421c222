/* Strings in arrays of several keys. */
BEGIN
{
	a["x", 1] = "one";
	a["x", 2] = "two";
	printf("%s %s %d", a["x", 1], a["x", 2], a["y", 1] == NULL);
	exit(0);
}
/* @@output
one two 1
*/
