/* Strings compare byte by byte, as strcmp does. */
BEGIN
{
	s = "abc";
	printf("%d%d%d%d%d%d\n", s < "abd", s <= "abc", s > "ab", s >= "abcd", s == "abc", s != "ABC");
	printf("%d%d%d\n", "" < "a", "b" > "abc", "a" == "b");
	exit(0);
}
/* @@output
111011
110
*/
