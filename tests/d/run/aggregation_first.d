/* @@options: -q -x aggfirst
 *
 * A table of several aggregations has the keys of the first alone: those that trunc() has left in it.
 */
BEGIN
{
	@size["apple"] = sum(30);
	@size["pear"] = sum(20);
	@size["melon"] = sum(10);
	@times["apple"] = count();
	@times["melon"] = count();
	@times["plum"] = count();
	@most["plum"] = max(4);
	trunc(@size, 2);
	printa("%s %@d %@d %@d\n", @size, @times, @most);
	exit(0);
}
/* @@output
pear 20 0 0
apple 30 1 0
*/
