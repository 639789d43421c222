#!/usr/bin/env -S dtrace -s
/*
 * @summary: what is read and written, by file and by the Python function that does it: calls, bytes, time
 * @output: table
 * @value: calls CALLS count
 * @value: bytes BYTES count
 * @value: time TIME time
 * @value: longest LONGEST time
 * @key: pid PID pid
 * @key: what WHAT word
 * @key: file FILE path
 * @key: where WHERE stack
 * @sort: time
 * @needs: kernel
 * @otherwise: inside
 * @option: least int 0 only calls that took so many microseconds at least
 *
 * Of the system calls that read, write, send and receive by a file descriptor, and of those that open, accept and connect.
 * TIME is from the call to its return, so it is also how long was waited for data; BYTES are those that were moved.
 * WHERE is the Python function that makes the call, with the line where it begins, and the one around it.  What was asked
 * for and refused is "failed".
 */
#pragma D option quiet
#pragma D option aggsize=32m

self uint64_t start;
self int fd;
self string file;
self string what;
self uintptr_t path;

syscall::read:entry, syscall::pread64:entry, syscall::readv:entry, syscall::recvfrom:entry, syscall::recvmsg:entry
/targeted/
{
	self->what = "read";
	self->fd = arg0;
	self->start = timestamp;
}

syscall::write:entry, syscall::pwrite64:entry, syscall::writev:entry, syscall::sendto:entry, syscall::sendmsg:entry
/targeted/
{
	self->what = "write";
	self->fd = arg0;
	self->start = timestamp;
}

syscall::fsync:entry, syscall::fdatasync:entry
/targeted/
{
	self->what = "sync";
	self->fd = arg0;
	self->start = timestamp;
}

syscall::connect:entry, syscall::accept4:entry
/targeted/
{
	self->what = probefunc == "connect" ? "connect" : "accept";
	self->fd = arg0;
	self->start = timestamp;
}

syscall::openat:entry
/targeted/
{
	self->what = "open";
	self->path = arg1;
	self->start = timestamp;
}

syscall::read:entry, syscall::pread64:entry, syscall::readv:entry, syscall::recvfrom:entry, syscall::recvmsg:entry,
syscall::write:entry, syscall::pwrite64:entry, syscall::writev:entry, syscall::sendto:entry, syscall::sendmsg:entry,
syscall::fsync:entry, syscall::fdatasync:entry, syscall::connect:entry, syscall::accept4:entry
/self->start/
{
	self->file = fds[self->fd].fi_fs == "sockfs" ? "(socket)" : fds[self->fd].fi_fs == "pipefs" ? "(pipe)" :
	    fds[self->fd].fi_pathname;
}

/* Only now is the name sure to be in memory. */
syscall::openat:return
/self->path && errno != EFAULT/
{
	self->file = copyinstr(self->path);
}

syscall::read:return, syscall::pread64:return, syscall::readv:return, syscall::recvfrom:return, syscall::recvmsg:return,
syscall::write:return, syscall::pwrite64:return, syscall::writev:return, syscall::sendto:return, syscall::sendmsg:return,
syscall::fsync:return, syscall::fdatasync:return, syscall::connect:return, syscall::accept4:return, syscall::openat:return
/self->start && (timestamp - self->start) / 1000 >= option_least/
{
	this->took = timestamp - self->start;
	this->what = (int64_t)arg1 < 0 ? "failed" : self->what;
	this->moved = (int64_t)arg1 > 0 && (self->what == "read" || self->what == "write") ? (int64_t)arg1 : 0;
	@calls[pid, this->what, self->file, pystack(2)] = count();
	@bytes[pid, this->what, self->file, pystack(2)] = sum(this->moved);
	@time[pid, this->what, self->file, pystack(2)] = sum(this->took);
	@longest[pid, this->what, self->file, pystack(2)] = max(this->took);
}

syscall::read:return, syscall::pread64:return, syscall::readv:return, syscall::recvfrom:return, syscall::recvmsg:return,
syscall::write:return, syscall::pwrite64:return, syscall::writev:return, syscall::sendto:return, syscall::sendmsg:return,
syscall::fsync:return, syscall::fdatasync:return, syscall::connect:return, syscall::accept4:return, syscall::openat:return
/self->start/
{
	self->start = 0;
	self->path = 0;
	self->file = "";
	self->what = "";
}
