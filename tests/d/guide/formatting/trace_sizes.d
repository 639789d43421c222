/* trace() prints a value in decimal by its type. */
BEGIN
{
	trace((char)65);
	trace(" ");
	trace((short)-2);
	trace(" ");
	trace((uint64_t)-1);
	trace(" ");
	trace("text");
	exit(0);
}
/* @@output
65 -2 18446744073709551615 text
*/
