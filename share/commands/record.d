#!/usr/bin/env -S dtrace -s
/*
 * @summary: record every call, exactly: a tree of calls with their number and wall time
 * @output: tree
 * @key: pid PID pid
 * @key: stack STACK stack
 * @value: at_entry - entry
 * @value: at_return - self
 * @variant: cpu bool CPU time beside wall time, which makes each call dearer by two readings of the thread's clock
 * @variant: sample int samples, so many a second on each CPU, and waits, in place of calls
 *
 * Self is the time in a function itself, total with what it calls.  Memory grows with the tree, not with the run.
 * The suffix of -o's file says what is written: .html is a flame graph for a browser, .svg a picture, .json a profile
 * for speedscope, .folded for flamegraph.pl, .csv and .jsonl rows; without -o the tree is printed.
 * Time of a function that waits while the recording ends is counted up to its thread's last call or return.
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
