#!/usr/bin/env -S dtrace -s
/*
 * @summary: count exceptions by type and by where they were, and where they were caught
 * @output: table
 * @value: count COUNT count
 * @value: caught CAUGHT count
 * @key: pid PID pid
 * @key: type TYPE text
 * @key: function FUNCTION text
 * @key: line LINE int
 * @key: file FILE path
 * @sort: count
 *
 * An exception counts once in each function that it is raised in or comes through.  One that goes no further, since an
 * except, a with or a finally has kept it, is counted as caught, at the line where the handler ends.  StopIteration and
 * StopAsyncIteration, by which every loop ends, are left out.
 */
#pragma D option quiet
#pragma D option aggsize=32m

python*:::exception-raise
/copyinstr(arg0) != "StopIteration" && copyinstr(arg0) != "StopAsyncIteration"/
{
	@count[pid, copyinstr(arg0), copyinstr(arg2), (int)arg3, copyinstr(arg1)] = count();
}

python*:::exception-caught
/copyinstr(arg0) != "StopIteration" && copyinstr(arg0) != "StopAsyncIteration"/
{
	@caught[pid, copyinstr(arg0), copyinstr(arg2), (int)arg3, copyinstr(arg1)] = count();
}
