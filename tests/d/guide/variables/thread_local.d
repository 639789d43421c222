/* self-> variables belong to the thread: what one thread writes another does not see.
   @@program: threads.py
   @@python: 3.9
   @@blanks: any */
syscall::getsid:entry
/pid == $target/
{
	self->x = arg0;
}
syscall::getpgid:entry
/pid == $target/
{
	@[self->x] = count();
}
/* @@output
0 1
7 1
9 1
*/
