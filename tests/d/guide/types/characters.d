/* Character constants and their escapes are integers; \' and \? are two characters, as DTrace has it. */
BEGIN
{
	printf("%d %d %d %d %d\n", 'a', 'A', '0', ' ', '~');
	printf("%d %d %d %d %d %d %d\n", '\a', '\b', '\f', '\n', '\r', '\t', '\v');
	printf("%d %d %d %d\n", '\\', '\?', '\'', '\"');
	printf("%d %d %d\n", '\0', '\101', '\x41');
	exit(0);
}
/* @@output
97 65 48 32 126
7 8 12 10 13 9 11
92 23615 23591 34
0 65 65
*/
