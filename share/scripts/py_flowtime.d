#!/usr/bin/env -S dtrace -Zs
/*
 * py_flowtime.d - calls and returns of Python functions with the time of each.
 *
 *	py_flowtime.d [-c COMMAND]
 *
 *	C PID		CPU and process
 *	TIME(us)	since the machine started
 *	DELTA(us)	since the line before, in the same thread
 *	FILE		base name of the source file
 *	FUNC		-> is a call, <- a return
 */
#pragma D option quiet
#pragma D option family

self int depth;

dtrace:::BEGIN { printf("%3s %6s %-16s %-10s  %-24s -- %s\n", "C", "PID", "TIME(us)", "DELTA(us)", "FILE", "FUNC"); }

python*:::function-entry, python*:::function-return
/!self->last/
{
	self->last = timestamp;
}

python*:::function-entry
{
	printf("%3d %6d %-16d %-10d  %-24s -- %*s-> %s\n", cpu, pid, timestamp / 1000, (timestamp - self->last) / 1000,
	    basename(copyinstr(arg0)), self->depth * 2, "", copyinstr(arg1));
	self->depth++;
	self->last = timestamp;
}

python*:::function-return
{
	self->depth -= self->depth > 0 ? 1 : 0;
	printf("%3d %6d %-16d %-10d  %-24s -- %*s<- %s\n", cpu, pid, timestamp / 1000, (timestamp - self->last) / 1000,
	    basename(copyinstr(arg0)), self->depth * 2, "", copyinstr(arg1));
	self->last = timestamp;
}
