#!/usr/bin/env -S dtrace -Zs
/*
 * py_calls.d - what Python programs do, counted: functions called, modules imported, collections of garbage.
 *
 *	py_calls.d		all Pythons, until Ctrl-C
 *	py_calls.d -c COMMAND	until the command ends
 *
 *	PID	process
 *	TYPE	func, import or gc
 *	NAME	function, module, or generation
 */
#pragma D option quiet
#pragma D option family
#pragma D option aggsortrev

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python*:::function-entry { @calls[pid, "func", copyinstr(arg1)] = count(); }

python*:::import-find-load-start { @calls[pid, "import", copyinstr(arg0)] = count(); }

python*:::gc-start { @calls[pid, "gc", lltostr(arg0)] = count(); }

dtrace:::END
{
	printf(" %6s %-8s %-48s %8s\n", "PID", "TYPE", "NAME", "CALLS");
	printa(" %6d %-8s %-48s %@8d\n", @calls);
}
