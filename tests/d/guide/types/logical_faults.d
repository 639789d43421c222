/* What is not looked at does not fault. */
int z;
BEGIN
{
	trace(z && 1 / z);
	trace(!z || 1 / z);
	exit(0);
}
/* @@output
01
*/
