#!/usr/bin/env -S dtrace -Zs
/*
 * py_who.d - who runs which Python source: function calls by process, user and file.
 *
 *	py_who.d [-c COMMAND]
 *
 *	PID	process
 *	UID	its user
 *	CALLS	of functions of the file
 *	FILE	source file
 */
#pragma D option quiet
#pragma D option family
#pragma D option aggsortrev

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python*:::function-entry { @calls[pid, uid, copyinstr(arg0)] = count(); }

dtrace:::END
{
	printf(" %6s %6s %8s %s\n", "PID", "UID", "CALLS", "FILE");
	printa(" %6d %6d %@8d %s\n", @calls);
}
