/* aggsortrev: the largest first.
   @@blanks: any
   @@options: -q -x aggsortrev */
BEGIN
{
	@["a"] = sum(3);
	@["b"] = sum(1);
	@["c"] = sum(2);
	exit(0);
}
/* @@output
a 3
c 2
b 1
*/
