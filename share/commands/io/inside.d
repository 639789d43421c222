#!/usr/bin/env -S dtrace -s
/*
 * @summary: what is read and written, by file and by the Python function that does it: calls, time
 * @output: table
 * @value: calls CALLS count
 * @value: time TIME time
 * @value: longest LONGEST time
 * @key: pid PID pid
 * @key: what WHAT word
 * @key: file FILE path
 * @key: where WHERE stack
 * @sort: time
 * @option: least int 0 only calls that took so many microseconds at least
 * @note: system calls are for root: these are calls of Python's functions that read and write; of how many BYTES is not known
 *
 * WHAT is the function of C: read, readline, write, flush, recv, sendall, connect, open and their like, of files, sockets and the
 * module os; TIME is how long was waited in it, LONGEST in one call.  A file that Python buffers goes to the system in some of its
 * calls only.  FILE is what the function is given: the file, the socket with its addresses, a path, or a descriptor's number.
 * What is done without a call, as "for line in file", and by modules of C, is not there.
 * WHERE is the Python function that makes the call, with its line, and the one around it.
 */
#pragma D option quiet
#pragma D option aggsize=32m

this string name;

inline int is_io = this->name == "read" || this->name == "write" || this->name == "recv" || this->name == "send" ||
    this->name == "readline" || this->name == "readlines" || this->name == "readinto" || this->name == "read1" ||
    this->name == "readall" || this->name == "writelines" || this->name == "flush" ||
    this->name == "recv_into" || this->name == "recvfrom" || this->name == "recvmsg" || this->name == "sendall" ||
    this->name == "sendto" || this->name == "sendmsg" || this->name == "sendfile" || this->name == "connect" ||
    this->name == "connect_ex" || this->name == "_accept" || this->name == "open" || this->name == "pread" ||
    this->name == "pwrite" || this->name == "fsync" || this->name == "fdatasync";

self uint64_t start;
self string what;
self string file;

python*:::cfunction-entry
/!self->start/
{
	this->name = copyinstr(arg3);
	self->start = is_io ? timestamp : 0;
}

python*:::cfunction-entry
/self->start && self->what == ""/
{
	self->file = strtok(pyargs(), ",");
	/* Generators have a send(), too, and what is in memory alone is no file. */
	self->what = index(self->file, "<coroutine ") == 0 || index(self->file, "<generator ") == 0 ||
	    index(self->file, "<async_generator ") == 0 || index(self->file, "<_io.StringIO ") == 0 ||
	    index(self->file, "<_io.BytesIO ") == 0 ? "(none)" : copyinstr(arg3);
	self->at = pystack(2, "line");
	self->start = self->what != "(none)" ? timestamp : 0;
}

/* "<_io.FileIO '/etc/passwd'>", "<socket.socket 127.0.0.1:80 -> 127.0.0.1:4711>" */
python*:::cfunction-entry
/self->start && index(self->file, "<_io.") == 0 && index(self->file, " '") > 0/
{
	this->behind = index(self->file, " '") + 2;
	self->file = substr(self->file, this->behind, strlen(self->file) - this->behind - 2);
}

python*:::cfunction-entry
/self->start && index(self->file, "'") == 0/
{
	self->file = substr(self->file, 1, strlen(self->file) - 2);
}

python*:::cfunction-entry
/self->start && index(self->file, "<socket.socket ") == 0/
{
	self->file = substr(self->file, 15, strlen(self->file) - 16);
}

python*:::cfunction-entry
/self->what == "(none)"/
{
	self->what = "";
}

python*:::cfunction-return
/self->start && copyinstr(arg3) == self->what && (timestamp - self->start) / 1000 >= option_least/
{
	this->took = timestamp - self->start;
	@calls[pid, self->what, self->file, self->at] = count();
	@time[pid, self->what, self->file, self->at] = sum(this->took);
	@longest[pid, self->what, self->file, self->at] = max(this->took);
}

python*:::cfunction-return
/self->start && copyinstr(arg3) == self->what/
{
	self->start = 0;
	self->what = "";
	self->file = "";
}
