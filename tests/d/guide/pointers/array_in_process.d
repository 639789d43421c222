/* An array of them, element by element.
   @@program: pair.py
   @@python: 3.9 */
syscall::write:entry
/pid == $target && arg2 == 8/
{
	this->w = (uint16_t *)copyin(arg1, 8);
	printf("%d %d %d", this->w[0], *(this->w + 1), (int16_t)this->w[2]);
}
/* @@output
7 0 -2
*/
