/* Negative values come first.
   @@blanks: any */
BEGIN
{
	@[1] = sum(5);
	@[2] = sum(-5);
	@[3] = sum(0);
	exit(0);
}
/* @@output
2 -5
3 0
1 5
*/
