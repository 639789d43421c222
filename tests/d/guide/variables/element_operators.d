/* Assignment operators on elements. */
int a[string];
BEGIN
{
	a["x"] += 5;
	a["x"] *= 3;
	a["x"] -= 1;
	a["x"] |= 1;
	printf("%d", a["x"]);
	exit(0);
}
/* @@output
15
*/
