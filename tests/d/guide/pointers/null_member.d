/* A member of what NULL points to: the fault is at the pointer's address, 0. */
struct s { int a; int b; };
BEGIN
{
	this->p = (struct s *)NULL;
	printf("%d", this->p->b);
}
ERROR
{
	printf("%d %d", arg4 == DTRACEFLT_BADADDR, arg5);
	exit(0);
}
/* @@stderr: invalid address \(0x0\)
   @@output
1 0
*/
