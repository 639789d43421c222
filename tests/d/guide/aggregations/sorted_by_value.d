/* The lines are in the order of the values.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(30);
	@["b"] = sum(10);
	@["c"] = sum(20);
	exit(0);
}
/* @@output
b 10
c 20
a 30
*/
