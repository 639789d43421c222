/* Both together.
   @@blanks: any
   @@options: -q -x aggsortkey -x aggsortrev */
BEGIN
{
	@["a"] = sum(3);
	@["b"] = sum(1);
	@["c"] = sum(2);
	exit(0);
}
/* @@output
c 2
b 1
a 3
*/
