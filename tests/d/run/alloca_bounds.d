/* Scratch memory is a clause's own: each begins it anew, what lies next to it or is another's cannot be read, and a
   string's bytes are copied like others.
   @@stderr: (?s)error in dt_clause_2 .*invalid address.*error in dt_clause_3 .*invalid address */
BEGIN
{
	a = alloca(1);
	b = (char *)alloca(9);
	c = alloca(0) == alloca(0);
	bcopy("scratch", b, 8);
	printf("%d %d %d %s\n", (uintptr_t)b - (uintptr_t)a, c, b[8], stringof(b));
}

BEGIN
{
	printf("%d\n", (uintptr_t)alloca(3) == (uintptr_t)a);
}

BEGIN
{
	trace(*b);
}

BEGIN
{
	this->p = (int *)alloca(8);
	trace(this->p[-1]);
}

BEGIN
{
	exit(0);
}
/* @@output
8 1 0 scratch
1
*/
