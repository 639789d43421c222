/* aggsortkeypos: which part of the key comes first.
   @@blanks: any
   @@options: -q -x aggsortkey -x aggsortkeypos=1 */
BEGIN
{
	@["a", 3] = count();
	@["b", 1] = count();
	@["c", 2] = count();
	exit(0);
}
/* @@output
b 1 1
c 2 1
a 3 1
*/
