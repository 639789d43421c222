/* A structure copied from the process, seen through a pointer.
   @@program: pair.py
   @@python: 3.9 */
struct pair { int a; short b; char c[2]; };
syscall::write:entry
/pid == $target && arg2 == 8/
{
	this->p = (struct pair *)copyin(arg1, sizeof (struct pair));
	printf("%d %d %c%c %d", this->p->a, this->p->b, this->p->c[0], this->p->c[1], sizeof (*this->p));
}
/* @@output
7 -2 xy 8
*/
