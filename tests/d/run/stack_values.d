/* @@options: -q -c "/bin/kill -0 1" */
/* A stack that a variable keeps is the one that was there when it was assigned, wherever it is printed. */
pid$target::kill:entry
{
	this->at = ustack(1);
	self->kept = ustack(1);
	kept[pid] = this->at;
	same = this->at == self->kept;
	printf("%d%k", same, this->at);
}
syscall::kill:entry
/self->kept/
{
	@[self->kept] = count();
	printf("%k", kept[pid]);
	trace(self->kept);
	exit(0);
}
/* @@blanks: any */
/* @@output
1
libc.so.6`kill
libc.so.6`kill
libc.so.6`kill
libc.so.6`kill
1
*/
