/* strtok() as in the guide; strtoll() as in strtoll(3). */
BEGIN
{
	this->s = strtok("a,b;;c", ",;");
	printf("%s", this->s);
	printf(" %s", strtok(NULL, ",;"));
	printf(" %s", strtok(NULL, ",;"));
	printf(" %d\n", strtok(NULL, ",;") == NULL);
	printf("%s %s\n", strtok("  one two", " "), strtok(NULL, " "));
	printf("%d %d %d %d\n", strtoll("-42xyz"), strtoll("0x1f", 16), strtoll("777", 8), strtoll("none"));
	exit(0);
}
/* @@output
a b c 1
one two
-42 31 511 0
*/
