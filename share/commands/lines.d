#!/usr/bin/env -S dtrace -s
/*
 * @summary: count how often each line runs
 * @output: table
 * @value: count COUNT count
 * @key: pid PID pid
 * @key: line LINE int
 * @key: function FUNCTION text
 * @key: file FILE path
 * @sort: count
 * @functions: optional
 *
 * As sys.settrace would be told.  Every line of the program has a probe then: name the functions, if only some matter.
 */
#pragma D option quiet
#pragma D option aggsize=32m

python*:::line
/selected/
{
	@count[pid, (int)arg2, copyinstr(arg1), copyinstr(arg0)] = count();
}
