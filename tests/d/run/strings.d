/* The string subroutines of the DTrace guide, "Actions and Subroutines". */
BEGIN
{
	printf("%d %d\n", strlen(""), strlen("hello"));
	printf("[%s]\n", strjoin("one", "two"));
	printf("[%s] [%s] [%s] [%s]\n", substr("hello", 1), substr("hello", 1, 3), substr("hello", -3),
	    substr("hello", 1, -1));
	printf("%d %d %d\n", index("hello", "l"), index("hello", "x"), index("hello", "lo"));
	printf("[%s] [%s]\n", strchr("hello", 'l'), strstr("hello", "ll"));
	printf("[%s] [%s] [%s]\n", lltostr(42), lltostr(-42), lltostr(0));
	printf("%d %d\n", "abc" == "abc", "abc" == "abd");
	printf("%d %d %d\n", "abc" < "abd", "b" > "abc", "" != "a");
	exit(0);
}
/* @@output
0 5
[onetwo]
[ello] [ell] [llo] [ell]
2 -1 3
[llo] [llo]
[42] [-42] [0]
1 0
1 1 1
*/
