#!/usr/bin/env -S dtrace -Zs
/*
 * py_syscalls.d - which system calls Python functions make.
 *
 *	py_syscalls.d [-c COMMAND]
 *
 *	PID		process
 *	FILE FUNC	the Python function that was running
 *	SYSCALL		what it called
 */
#pragma D option quiet
#pragma D option aggsortrev

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python*:::function-entry
{
	self->depth++;
	self->file[self->depth] = basename(copyinstr(arg0));
	self->func[self->depth] = copyinstr(arg1);
}

python*:::function-return
/self->depth/
{
	self->file[self->depth] = "";
	self->func[self->depth] = "";
	self->depth--;
}

syscall:::entry
/self->depth/
{
	@calls[pid, self->file[self->depth], self->func[self->depth], probefunc] = count();
}

dtrace:::END
{
	printf(" %6s %-28s %-28s %-20s %8s\n", "PID", "FILE", "FUNC", "SYSCALL", "CALLS");
	printa(" %6d %-28s %-28s %-20s %@8d\n", @calls);
}
