/* trunc(@, -n): the n smallest stay.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(2);
	@["c"] = sum(3);
	@["d"] = sum(4);
	trunc(@, -3);
	exit(0);
}
/* @@output
a 1
b 2
c 3
*/
