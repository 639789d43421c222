#!/usr/bin/env -S dtrace -Zs
/*
 * py_syscalls.d - which system calls Python functions make.
 *
 *	py_syscalls.d			processes whose command line has "python", until Ctrl-C
 *	py_syscalls.d -c COMMAND	the command and what it starts, until it ends
 *	py_syscalls.d -p PID		a process and what it starts
 *
 *	PID SYSCALL	process, and what it called
 *	WHERE		the Python function that was running, with the line where it begins; none outside of Python
 *
 * Python's stack is read at the system call: no call of a function costs anything.
 */
#pragma D option quiet
#pragma D option aggsortrev
#pragma D option defaultargs

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

syscall:::entry
/$target ? pid == $target || progenyof($target) : strstr(curpsinfo->pr_psargs, "python") != NULL/
{
	@calls[pid, probefunc, pystack(1)] = count();
}

dtrace:::END
{
	printf(" %6s %-20s %8s  %s\n", "PID", "SYSCALL", "CALLS", "WHERE");
	printa(" %6d %-20s %@8d%k\n", @calls);
}
