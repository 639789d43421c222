#!/usr/bin/env -S dtrace -s
/*
 * @summary: count audit events, such as open, exec, import and socket.connect
 * @output: table
 * @value: count COUNT count
 * @key: pid PID pid
 * @key: event EVENT text
 * @sort: count
 *
 * What a program does to the world around it, as sys.addaudithook() would be told.
 */
#pragma D option quiet

python*:::audit
{
	@count[pid, copyinstr(arg0)] = count();
}
