/* trunc(@, 0) removes all.
   @@blanks: any */
BEGIN
{
	@["a"] = sum(1);
	trunc(@, 0);
	@x = count();
	exit(0);
}
/* @@output
1
*/
