#!/usr/bin/env -S dtrace -Zs
/*
 * py_funccalls.d - calls of Python functions, counted by file and function.
 *
 *	py_funccalls.d [-c COMMAND]
 *
 *	PID	process
 *	FILE	base name of the source file
 *	FUNC	function
 *	CALLS	how often it was called
 */
#pragma D option quiet
#pragma D option family
#pragma D option aggsortrev

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python*:::function-entry { @funcs[pid, basename(copyinstr(arg0)), copyinstr(arg1)] = count(); }

dtrace:::END
{
	printf(" %6s %-32s %-32s %8s\n", "PID", "FILE", "FUNC", "CALLS");
	printa(" %6d %-32s %-32s %@8d\n", @funcs);
}
