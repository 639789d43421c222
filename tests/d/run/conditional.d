/* ?: and the short circuits: the side that is not taken has no effect. */
BEGIN
{
	n = 0;
	printf("%s %s\n", 1 ? "yes" : "no", 0 ? "yes" : "no");
	x = 0 && n++;
	x = 1 || n++;
	x = 0 ? n++ : 5;
	printf("%d %d\n", n, x);
	x = 1 && n++;
	x = 0 || n++;
	printf("%d\n", n);
	printf("%s\n", n > 5 ? "many" : n > 1 ? "some" : "few");
	exit(0);
}
/* @@output
yes no
0 5
2
some
*/
