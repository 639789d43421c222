/* More than there are: all stay.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(1);
	@["b"] = sum(2);
	trunc(@, 10);
	exit(0);
}
/* @@output
a 1
b 2
*/
