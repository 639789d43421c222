/* Strings in arrays of several keys. */
BEGIN
{
	a["x", 1] = "one";
	a["x", 2] = "two";
	printf("%s %s [%s]", a["x", 1], a["x", 2], a["y", 1]);
	exit(0);
}
/* @@output
one two []
*/
