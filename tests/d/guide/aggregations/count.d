/* count(): how often.
   @@blanks: any */
BEGIN
{
	@ = count();
	@ = count();
	@ = count();
	exit(0);
}
/* @@output
3
*/
