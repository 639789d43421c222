/* The same escapes in strings; %S shows them as they were written. */
BEGIN
{
	printf("%S\n", "a\tb\n\"q\" \\ \101\x42");
	printf("a\tb\\\n");
	exit(0);
}
/* @@output
a\tb\n\"q\" \\ AB
a	b\
*/
