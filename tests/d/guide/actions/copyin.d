/* copyin() takes bytes of the process, copyinstr() a string: what the traced program writes.
   @@program: write.py
   @@python: 3.9 */
syscall::write:entry
/pid == $target && arg2 == 14/
{
	this->p = (char *)copyin(arg1, arg2);
	printf("%c%c %s|%s", this->p[0], this->p[7], stringof(copyin(arg1, 5)), copyinstr(arg1, 4));
}
/* @@output
hw hello|hel
*/
