/*
 * A string plus a number is the text from that byte on, as if the string were a pointer to its first byte (DTrace guide,
 * "DTrace Support for Strings"; for Linux, additive operators).
 */
string s;

BEGIN
{
	s = "hello";
	i = 2;
	self->t = "thread";
	a[1] = "array";
	printf("%s|%s|%s|%s\n", s + 1, 1 + s, s + i, "constant" + 3);
	printf("%c%c%c%d\n", *(s + 1), (s + 1)[1], *(self->t + i), *(s + 5));
	printf("[%s][%s][%s][%s]\n", s + 5, s + 6, s + 1000, s + -1);
	printf("%s %s %d %s\n", self->t + 1, a[1] + i, strlen(s + i), strjoin(s + 3, s + 4));
	x = s + 1;
	printf("%s %d %d %s\n", x, x == "ello", s + 1 == x, i ? s + 3 : s);
	@[s + 4] = count();
	printa("%s %@d\n", @);
	exit(0);
}
/* @@output
ello|ello|llo|stant
elr0
[][][][]
hread ray 3 loo
ello 1 1 lo
o 1
*/
