/* An argument has the size and the sign of its type, whatever length the conversion names. */
BEGIN
{
	printf("%d %u %x\n", (char)-1, (unsigned char)-1, (unsigned char)-1);
	printf("%d %u %x\n", (short)-2, (unsigned short)-2, (unsigned short)-2);
	printf("%d %u %x\n", (int)-3, (unsigned int)-3, (unsigned int)-3);
	printf("%d %u %x\n", (long long)-4, (unsigned long long)-4, (unsigned long long)-4);
	printf("%ld %lld %hd %hhd\n", 5, 5, 5, 5);
	exit(0);
}
/* @@output
-1 255 ff
-2 65534 fffe
-3 4294967293 fffffffd
-4 18446744073709551612 fffffffffffffffc
5 5 5 5
*/
