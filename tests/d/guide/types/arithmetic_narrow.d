/* What is narrower than an int is computed in the wider type of the two, unsigned if both are as wide; comparisons are C's. */
signed char c;
unsigned char C;
short s;
unsigned short S;

BEGIN
{
	c = -2; C = 253; s = -3; S = 65534;
	printf("%d %d %d\n", c + c, C + C, C + c);
	printf("%d %d %d\n", S + s, S + C, s + C);
	printf("%d %d %d\n", C * C, C - c, S * S);
	printf("%d %d\n", C + 3, c - 1);
	printf("%d %d\n", c < C, s < S);
	C += 3;
	printf("%d %d\n", C, sizeof (C + c));
	exit(0);
}
/* @@output
-4 250 251
65531 251 250
9 255 4
256 -3
1 1
0 1
*/
