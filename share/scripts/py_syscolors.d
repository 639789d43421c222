#!/usr/bin/env -S dtrace -Zs
/*
 * py_syscolors.d - calls of Python functions and the system calls in them, in colours.
 *
 *	py_syscolors.d -c COMMAND
 *	py_syscolors.d -p PID
 *
 * Functions are violet, system calls red.
 */
#pragma D option quiet

self int depth;

dtrace:::BEGIN
{
	colour_func = "\033[2;35m";
	colour_call = "\033[2;31m";
	colour_off = "\033[0m";
	printf("%3s %6s %10s  %24s:%-4s %-8s %s\n", "C", "PID", "DELTA(us)", "FILE", "LINE", "TYPE", "NAME");
}

python$target:::function-entry, python$target:::function-return
/!self->last/
{
	self->last = timestamp;
}

python$target:::function-entry
{
	printf("%s%3d %6d %10d  %24s:%-4d %-8s %*s-> %s%s\n", colour_func, cpu, pid, (timestamp - self->last) / 1000,
	    basename(copyinstr(arg0)), arg2, "func", self->depth * 2, "", copyinstr(arg1), colour_off);
	self->depth++;
	self->last = timestamp;
}

python$target:::function-return
{
	self->depth -= self->depth > 0 ? 1 : 0;
	printf("%s%3d %6d %10d  %24s:%-4d %-8s %*s<- %s%s\n", colour_func, cpu, pid, (timestamp - self->last) / 1000,
	    basename(copyinstr(arg0)), arg2, "func", self->depth * 2, "", copyinstr(arg1), colour_off);
	self->last = timestamp;
}

syscall:::entry
/self->depth/
{
	printf("%s%3d %6d %10d  %24s:%-4s %-8s %*s-> %s%s\n", colour_call, cpu, pid, (timestamp - self->last) / 1000,
	    "\"", "-", "syscall", self->depth * 2, "", probefunc, colour_off);
	self->last = timestamp;
}

syscall:::return
/self->depth/
{
	printf("%s%3d %6d %10d  %24s:%-4s %-8s %*s<- %s%s\n", colour_call, cpu, pid, (timestamp - self->last) / 1000,
	    "\"", "-", "syscall", self->depth * 2, "", probefunc, colour_off);
	self->last = timestamp;
}
