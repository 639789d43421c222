/* The key and value types of an associative array can be declared. */
string name[int, char];
int total[string];
BEGIN
{
	name[1, 'a'] = "one";
	total["x"] += 5;
	total["x"] += 6;
	printf("%s %d %d", name[1, 'a'], name[1, 'b'] == NULL, total["x"]);
	exit(0);
}
/* @@output
one 1 11
*/
