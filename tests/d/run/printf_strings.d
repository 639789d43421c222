/* Width and precision of strings, as in printf(3). */
BEGIN
{
	printf("[%s] [%10s] [%-10s] [%.2s] [%8.3s]\n", "abc", "abc", "abc", "abc", "abcdef");
	printf("[%*s] [%-*s]\n", 5, "ab", 5, "ab");
	printf("[%s]\n", "");
	printf("tab\there \"quoted\" back\\slash\n");
	exit(0);
}
/* @@output
[abc] [       abc] [abc       ] [ab] [     abc]
[   ab] [ab   ]
[]
tab	here "quoted" back\slash
*/
