/* Keys are converted to the types of the first use.
   @@blanks: any */
BEGIN
{
	@[(char)1] = count();
	@[257] = count();
	exit(0);
}
/* @@output
1 2
*/
