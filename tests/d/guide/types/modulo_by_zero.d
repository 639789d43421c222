/* So does a remainder.
   @@stderr: divide-by-zero in action #1 */
int z;
BEGIN
{
	trace(1 % z);
}
BEGIN
{
	exit(0);
}
/* @@output

*/
