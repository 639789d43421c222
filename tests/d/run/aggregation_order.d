/* @@blanks: any
 * An aggregation is printed by value, ascending; equal values by key.
 */
BEGIN
{
	@["three"] = sum(3);
	@["minus"] = sum(-1);
	@["one b"] = sum(1);
	@["one a"] = sum(1);
	@["two"] = sum(2);
	exit(0);
}
/* @@output
 minus -1
 one a 1
 one b 1
 two 2
 three 3
*/
