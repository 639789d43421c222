/* Strings as elements and as keys. */
BEGIN
{
	x["a"] = "first";
	x["b"] = x["a"];
	x["a"] = "second";
	printf("%s %s [%s]", x["a"], x["b"], x["c"]);
	exit(0);
}
/* @@output
second first []
*/
