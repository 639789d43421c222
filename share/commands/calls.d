#!/usr/bin/env -S dtrace -s
/*
 * @summary: count the calls of Python functions
 * @output: table
 * @value: calls CALLS count
 * @key: pid PID pid
 * @key: function FUNCTION text
 * @key: file FILE path
 * @sort: calls
 * @functions: optional
 *
 * A call is one of Python code: each time a generator or coroutine goes on is one, too, as sys.setprofile counts them.
 */
#pragma D option quiet
#pragma D option aggsize=32m

python*:::function-entry
/selected/
{
	@calls[pid, copyinstr(arg1), copyinstr(arg0)] = count();
}
