/* A store to other memory compiles, and is an error when it is made.
   @@exit: 1
   @@stderr: (?s)dt_clause_0 .*invalid address \(0x0\) at.*dt_clause_1 .*invalid address \(0x[0-9a-f]+\) at.*dt_clause_2 .*invalid alignment \(0x[0-9a-f]+\) at */
int failed;
BEGIN { *(int *)0 = 1; }
BEGIN
{
	x = (int *)alloca(sizeof (int));
	y = (int *)(x - 3300778156056);
	*y = 3;
}
BEGIN
{
	x = (int *)alloca(2 * sizeof (int));
	*(int *)((char *)x + 1) = 3;
}
BEGIN { exit(failed == 3); }
dtrace:::ERROR { failed++; }
/* @@output
*/
