/* @@options: -q -x defaultargs
 *
 * Without -c and -p $target is 0 where arguments have defaults.
 */
inline int ours = !$target || progenyof($target);

BEGIN
/ours/
{
	printf("%d\n", $target);
	exit(0);
}
/* @@output
0
*/
