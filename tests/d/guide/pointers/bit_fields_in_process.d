/* Bit-fields of what a process writes.
   @@program: pair.py
   @@python: 3.9 */
struct bits { unsigned int low:3, mid:5; int rest:24; };
syscall::write:entry
/pid == $target && arg2 == 8/
{
	this->b = (struct bits *)copyin(arg1, 8);
	printf("%d %d %d", this->b->low, this->b->mid, this->b->rest);
}
/* @@output
7 0 0
*/
