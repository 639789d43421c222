/* Reading through a null pointer is told, and ends the clause.
   @@stderr: invalid address \(0x0\) at BPF pc */
BEGIN
{
	x = (int *)NULL;
	y = *x;
	trace(y);
}
BEGIN
{
	trace("goes on");
	exit(0);
}
/* @@output
goes on
*/
