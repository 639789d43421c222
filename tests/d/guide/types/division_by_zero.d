/* A division by zero ends the clause and is told; the script goes on.
   @@stderr: ^dtrace: error in dt_clause_0 for probe ID 1 \(dtrace:::BEGIN\): divide-by-zero at BPF pc \d+\n$ */
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
