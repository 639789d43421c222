/* Structures and unions in each other, of what a process writes.
   @@program: pair.py
   @@python: 3.9 */
union half { uint32_t word; struct { uint16_t low; uint16_t high; } part; };
struct both { union half first; union half second; };
syscall::write:entry
/pid == $target && arg2 == 8/
{
	this->b = (struct both *)copyin(arg1, sizeof (struct both));
	printf("%d %d %x %x", this->b->first.word, this->b->first.part.high, this->b->second.part.low, this->b->second.part.high);
}
/* @@output
7 0 fffe 7978
*/
