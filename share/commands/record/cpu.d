#!/usr/bin/env -S dtrace -s
/*
 * @summary: record every call, exactly: a tree of calls with their number, wall time and CPU time
 * @output: tree
 * @key: pid PID pid
 * @key: stack STACK stack
 * @value: at_entry - entry
 * @value: at_return - self
 * @value: cpu_at_entry - caller-cpu
 * @value: cpu_at_return - cpu
 *
 * CPU time is that of the calling thread alone: what it computes, and what the system does for it, without its waits.  What the
 * measurement itself takes is left out of it, but not of wall time.  The thread's clock is a system call: each call of a function
 * is one to two microseconds slower, a program that does little but call functions ten times and more.  --sample costs calls nothing.
 */
#pragma D option quiet
#pragma D option aggsize=128m
#pragma D option ustackframes=120

self uint64_t last;
self uint64_t cpu;

python*:::function-entry
{
	this->last = self->last;
	this->cpu = self->cpu;
	self->last = timestamp;
	self->cpu = vtimestamp;
	@at_entry[pid, pystack()] = avg(this->last ? timestamp - this->last : 0);
	@cpu_at_entry[pid, pystack()] = sum(this->last ? vtimestamp - this->cpu : 0);
}

python*:::function-return
/(this->last = self->last)/
{
	this->cpu = self->cpu;
	self->last = timestamp;
	self->cpu = vtimestamp;
	@at_return[pid, pystack()] = sum(timestamp - this->last);
	@cpu_at_return[pid, pystack()] = sum(vtimestamp - this->cpu);
}
