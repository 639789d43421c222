/* Keys are expressions, and their number can be large.
   @@blanks: any */
BEGIN
{
	@[1 + 1, strjoin("a", "b"), probename, -1] = count();
	exit(0);
}
/* @@output
2 ab BEGIN -1 1
*/
