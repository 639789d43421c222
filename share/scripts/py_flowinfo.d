#!/usr/bin/env -S dtrace -Zs
/*
 * py_flowinfo.d - calls and returns of Python functions with what there is to know about each.
 *
 *	py_flowinfo.d [-c COMMAND]
 *
 *	C		CPU
 *	PID		process
 *	DELTA(us)	since the line before, in the same thread
 *	FILE:LINE	where
 *	TYPE FUNC	-> is a call, <- a return
 */
#pragma D option quiet
#pragma D option family

self int depth;

dtrace:::BEGIN { printf("%3s %6s %10s  %24s:%-4s %-8s %s\n", "C", "PID", "DELTA(us)", "FILE", "LINE", "TYPE", "FUNC"); }

python*:::function-entry, python*:::function-return
/!self->last/
{
	self->last = timestamp;
}

python*:::function-entry
{
	printf("%3d %6d %10d  %24s:%-4d %-8s %*s-> %s\n", cpu, pid, (timestamp - self->last) / 1000,
	    basename(copyinstr(arg0)), arg2, "func", self->depth * 2, "", copyinstr(arg1));
	self->depth++;
	self->last = timestamp;
}

python*:::function-return
{
	self->depth -= self->depth > 0 ? 1 : 0;
	printf("%3d %6d %10d  %24s:%-4d %-8s %*s<- %s\n", cpu, pid, (timestamp - self->last) / 1000,
	    basename(copyinstr(arg0)), arg2, "func", self->depth * 2, "", copyinstr(arg1));
	self->last = timestamp;
}
