#!/usr/bin/env -S dtrace -Zs
/*
 * py_funccalls.d - calls of Python functions, counted by file and function.
 *
 *	py_funccalls.d [-c COMMAND]
 *
 *	FILE	base name of the source file
 *	FUNC	function
 *	CALLS	how often it was called
 */
#pragma D option quiet
#pragma D option family
#pragma D option aggsortrev

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python*:::function-entry { @funcs[basename(copyinstr(arg0)), copyinstr(arg1)] = count(); }

dtrace:::END
{
	printf(" %-32s %-32s %8s\n", "FILE", "FUNC", "CALLS");
	printa(" %-32s %-32s %@8d\n", @funcs);
}
