/* &&, || and ^^; the first two look at the right side only when it decides. */
int n;
BEGIN
{
	printf("%d%d%d%d\n", 1 && 1, 1 && 0, 0 && 1, 0 && 0);
	printf("%d%d%d%d\n", 1 || 1, 1 || 0, 0 || 1, 0 || 0);
	printf("%d%d%d%d\n", 1 ^^ 1, 1 ^^ 0, 0 ^^ 1, 0 ^^ 0);
	printf("%d%d%d\n", !0, !1, !5);
	this->a = 0 && n++;
	this->a = 1 || n++;
	printf("%d ", n);
	this->a = 1 && n++;
	this->a = 0 || n++;
	this->a = 1 ^^ n++;
	printf("%d\n", n);
	exit(0);
}
/* @@output
1000
1110
0110
100
0 3
*/
