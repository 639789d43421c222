/* Tuples of integers and strings as keys; an element never assigned is 0 or NULL; assigning 0 removes. */
BEGIN
{
	a["x", 1] = 10;
	a["x", 2] = 20;
	a["y", 1] = 30;
	a["x", 1] += 5;
	names[7] = "seven";
	printf("%d %d %d %d\n", a["x", 1], a["x", 2], a["y", 1], a["z", 9]);
	printf("[%s] %d\n", names[7], names[8] == NULL);
	a["x", 2] = 0;
	names[7] = 0;
	printf("%d %d\n", a["x", 2], names[7] == NULL);
	a[strjoin("x", ""), 3 - 2]++;
	printf("%d\n", a["x", 1]);
	exit(0);
}
/* @@output
15 20 30 0
[seven] 1
0 1
16
*/
