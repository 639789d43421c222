/* copyinto() puts them where one wants them.
   @@program: write.py
   @@python: 3.9 */
syscall::write:entry
/pid == $target && arg2 == 14/
{
	this->p = (char *)alloca(8);
	copyinto(arg1 + 7, 5, this->p);
	printf("%s", stringof(this->p));
}
/* @@output
world
*/
