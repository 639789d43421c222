/* The bitwise operators; >> of a signed value keeps the sign, of an unsigned one fills with zeros. */
BEGIN
{
	a = 0xc;
	b = 0xa;
	printf("%x %x %x %x\n", a & b, a | b, a ^ b, ~a);
	printf("%x %x\n", a << 4, a >> 2);
	printf("%d %x\n", -16 >> 2, (unsigned int)-16 >> 28);
	exit(0);
}
/* @@output
8 e 6 fffffff3
c0 3
-4 f
*/
