/* normalize(): values are shown divided.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(100);
	@["b"] = sum(55);
	normalize(@, 10);
	exit(0);
}
/* @@output
b 5
a 10
*/
