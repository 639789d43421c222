/* A string that a system call is given is looked at when it returns: then the kernel has read it.
   @@program: open.py
   @@python: 3.9 */
syscall::openat:entry
/pid == $target/
{
	self->path = arg1;
	self->flags = arg2;
}
syscall::openat:return
/self->path && errno == 2 && strstr(copyinstr(self->path), "/no/such/") != NULL/
{
	printf("%s %d %d %d\n", copyinstr(self->path), self->flags & 3, (int)arg1, errno);
}
syscall::openat:return
{
	self->path = 0;
	self->flags = 0;
}
/* @@output
/no/such/file 0 -1 2
*/
