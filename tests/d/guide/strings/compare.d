/* The comparison operators on strings. */
BEGIN
{
	s = "banana";
	printf("%d%d%d%d%d%d", s < "cherry", s > "apple", s <= "banana", s >= "band", s == "banana", s != "banana");
	exit(0);
}
/* @@output
111010
*/
