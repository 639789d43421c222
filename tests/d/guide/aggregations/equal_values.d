/* Equal values are in the order of the keys.
   @@blanks: any */
BEGIN
{
	@["z"] = count();
	@["a"] = count();
	@["m"] = count();
	exit(0);
}
/* @@output
a 1
m 1
z 1
*/
