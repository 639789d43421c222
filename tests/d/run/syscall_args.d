/* args[] of system calls by their prototypes; addresses in them are the process's, also behind variables. */
syscall::openat:entry
/pid == $target/
{
	self->path = args[1];
}
syscall::openat:return
/self->path && stringof(self->path) == "/dev/zero"/
{
	printf("%s\n", stringof(self->path));
	self->on = 1;
}
syscall::openat:return
{
	self->path = 0;
}
syscall::read:entry
/self->on/
{
	printf("%d %d\n", args[2], (uintptr_t)args[1] == arg1);
}
syscall::readv:entry
/self->on/
{
	printf("%d %d %d\n", args[2], args[1]->iov_len, args[1][1].iov_len);
	self->v = *args[1];
	this->p = args[1] + 1;
	printf("%d %d %d\n", self->v.iov_len, this->p->iov_len, sizeof (*args[1]));
}
syscall::pipe2:entry
/self->on/
{
	self->fds = args[0];
}
syscall::pipe2:return
/self->fds/
{
	printf("%d %d\n", self->fds[1] - *self->fds, args[0]);
	exit(0);
}
/* @@output
/dev/zero
77 1
2 10 20
10 20 16
1 0
*/
