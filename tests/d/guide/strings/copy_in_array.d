/* Strings as elements and as keys. */
BEGIN
{
	x["a"] = "first";
	x["b"] = x["a"];
	x["a"] = "second";
	printf("%s %s %d", x["a"], x["b"], x["c"] == NULL);
	exit(0);
}
/* @@output
second first 1
*/
