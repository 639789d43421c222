/* trunc(@, n): the n largest stay.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(2);
	@["c"] = sum(3);
	@["d"] = sum(4);
	trunc(@, 2);
	exit(0);
}
/* @@output
c 3
d 4
*/
