#!/usr/bin/env -S dtrace -Zs
/*
 * py_profile.d - where Python programs spend their time, sampled 97 times a second on each CPU.
 *
 *	py_profile.d			processes whose command line has "python", until Ctrl-C
 *	py_profile.d -c COMMAND		the command and what it starts, until it ends
 *	py_profile.d -p PID		a process and what it starts
 *
 *	PID		process
 *	WHERE		the Python function that was running, with the line where it begins
 *	CODE		the C function that it was in, or the module where its name is not known
 *
 * Python's stack is read at the sample: no call of a function costs anything.
 */
#pragma D option quiet
#pragma D option aggsortrev
#pragma D option defaultargs

dtrace:::BEGIN { printf("Sampling... Hit Ctrl-C to end.\n"); }

profile:::profile-97
/arg1 && ($target ? pid == $target || progenyof($target) : strstr(curpsinfo->pr_psargs, "python") != NULL)/
{
	@funcs[pid, pystack(1)] = count();
	@code[pid, ufunc(arg1), pystack(1)] = count();
}

dtrace:::END
{
	printf("\nSamples by Python function,\n %6s %8s  %s\n", "PID", "SAMPLES", "WHERE");
	printa(" %6d %@8d%k\n", @funcs);
	printf("\nSamples by the code that ran,\n %6s %-40s %8s  %s\n", "PID", "CODE", "SAMPLES", "WHERE");
	printa(" %6d %-40A %@8d%k\n", @code);
}
