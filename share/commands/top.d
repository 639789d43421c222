#!/usr/bin/env -S dtrace -s
/*
 * @summary: the busiest Python functions, now: a live table
 * @output: functions
 * @key: pid PID pid
 * @key: stack STACK stack
 * @value: at_entry - entry
 * @value: at_return - self
 * @sort: self
 * @live: 1
 *
 * Self is the wall time in a function itself, total with what it calls, once where a function calls itself.
 * Time of a function that waits at the end is counted up to its thread's last call or return.
 */
#pragma D option quiet
#pragma D option aggsize=64m
#pragma D option ustackframes=120

self uint64_t last;

python*:::function-entry
{
	this->last = self->last;
	self->last = timestamp;
	@at_entry[pid, pystack()] = avg(this->last ? timestamp - this->last : 0);
}

python*:::function-return
/(this->last = self->last)/
{
	self->last = timestamp;
	@at_return[pid, pystack()] = sum(timestamp - this->last);
}
