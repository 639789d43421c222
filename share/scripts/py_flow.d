#!/usr/bin/env -S dtrace -Zs
/*
 * py_flow.d - calls and returns of Python functions as they happen, indented by depth.
 *
 *	py_flow.d [-c COMMAND]
 *
 *	C	CPU
 *	PID	process
 *	FUNC	-> is a call, <- a return
 */
#pragma D option quiet
#pragma D option family

self int depth;

dtrace:::BEGIN { printf("%3s %6s  %s\n", "C", "PID", "FUNC"); }

python*:::function-entry
{
	printf("%3d %6d  %*s-> %s:%s\n", cpu, pid, self->depth * 2, "", basename(copyinstr(arg0)), copyinstr(arg1));
	self->depth++;
}

python*:::function-return
{
	self->depth -= self->depth > 0 ? 1 : 0;
	printf("%3d %6d  %*s<- %s:%s\n", cpu, pid, self->depth * 2, "", basename(copyinstr(arg0)), copyinstr(arg1));
}
