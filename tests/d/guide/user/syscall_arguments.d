/* Arguments of a system call, with strings copied from the process.
   @@program: open.py
   @@python: 3.9 */
syscall::openat:entry
/pid == $target && copyinstr(arg1) == "/no/such/file"/
{
	self->open = 1;
	printf("%s %d ", copyinstr(arg1), (int)arg2 & 3);
}
syscall::openat:return
/self->open/
{
	printf("%d %d\n", (int)arg1, errno);
	self->open = 0;
}
/* @@output
/no/such/file 0 -1 2
*/
