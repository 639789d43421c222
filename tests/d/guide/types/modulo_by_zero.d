/* So does a remainder.
   @@stderr: divide-by-zero at BPF pc */
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
