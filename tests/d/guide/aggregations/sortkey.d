/* aggsortkey: in the order of the keys.
   @@blanks: any
   @@options: -q -x aggsortkey */
BEGIN
{
	@["a"] = sum(3);
	@["b"] = sum(1);
	@["c"] = sum(2);
	exit(0);
}
/* @@output
a 3
b 1
c 2
*/
