/* trunc(): the keys go as well.
   @@blanks: any */
BEGIN
{
	@["a"] = count();
	@k["b"] = count();
	trunc(@);
	exit(0);
}
/* @@output
b 1
*/
