/* setopt() changes the order between two printa(). */
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(2);
	printa("%s", @);
	setopt("aggsortrev");
	printa("%s", @);
	exit(0);
}
/* @@output
abba
*/
