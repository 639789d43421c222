/* %x and %X, and # puts 0x or 0X in front. */
BEGIN
{
	printf("%x %X %#x %#X %x", 0xbeef, 0xbeef, 255, 255, (char)-1);
	exit(0);
}
/* @@output
beef BEEF 0xff 0XFF ff
*/
