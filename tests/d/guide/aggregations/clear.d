/* clear(): values become zero, keys stay.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(5);
	@["b"] = sum(6);
	clear(@);
	exit(0);
}
/* @@output
a 0
b 0
*/
