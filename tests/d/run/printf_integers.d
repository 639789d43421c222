/* The conversions that D has from printf(3); the expected lines are those of the shell's printf. */
BEGIN
{
	printf("%d|%5d|%-5d|%05d|%+d|%i\n", 42, 42, 42, 42, 42, -42);
	printf("%x|%X|%#x|%o|%#o|%u\n", 255, 255, 255, 8, 8, 7);
	printf("%*d|%-*d|%.3d\n", 6, 42, 6, 42, 7);
	printf("%c%c%c|%%\n", 'a', 98, 'c');
	exit(0);
}
/* @@output
42|   42|42   |00042|+42|-42
ff|FF|0xff|10|010|7
    42|42    |007
abc|%
*/
