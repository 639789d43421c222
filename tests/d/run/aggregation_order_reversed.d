/* @@options: -q -x aggsortrev
 * @@blanks: any
 * An aggregation is printed by value, descending with -x aggsortrev.
 */
BEGIN
{
	@["three"] = sum(3);
	@["minus"] = sum(-1);
	@["one a"] = sum(1);
	@["two"] = sum(2);
	exit(0);
}
/* @@output
 three 3
 two 2
 one a 1
 minus -1
*/
