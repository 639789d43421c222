#!/usr/bin/env -S dtrace -s
/*
 * @summary: how often garbage is collected, how long that takes, and what it finds
 * @output: table
 * @key: pid PID pid
 * @key: generation GENERATION int
 * @value: runs RUNS count
 * @value: total TOTAL time
 * @ratio: average AVERAGE time total runs
 * @value: longest LONGEST time
 * @value: objects OBJECTS count
 * @sort: total
 *
 * The program stands still meanwhile.  OBJECTS is how many were garbage.
 */
#pragma D option quiet

self uint64_t start;
self int generation;

python*:::gc-start
{
	self->start = timestamp;
	self->generation = arg0;
}

python*:::gc-done
/self->start/
{
	this->took = timestamp - self->start;
	self->start = 0;
	@runs[pid, self->generation] = count();
	@total[pid, self->generation] = sum(this->took);
	@longest[pid, self->generation] = max(this->took);
	@objects[pid, self->generation] = sum((int64_t)arg0);
}
