/* A division by zero ends the clause and is told; the script goes on.
   @@stderr: ^dtrace: error on enabled probe ID 1 \(ID 1: dtrace:::BEGIN\): divide-by-zero in action #1 at DIF offset \d+\n$ */
int z;
BEGIN
{
	trace(1 / z);
	trace("never");
}
BEGIN
{
	trace("on");
	exit(0);
}
/* @@output
on
*/
