#!/usr/bin/env -S dtrace -s
/*
 * @summary: asyncio's tasks: how often each had its turn, how long it kept the loop, and the longest turn
 * @output: table
 * @value: turns TURNS count
 * @value: busy BUSY time
 * @ratio: average AVERAGE time busy turns
 * @value: longest LONGEST time
 * @key: pid PID pid
 * @key: task TASK text
 * @key: coroutine COROUTINE text
 * @sort: busy
 *
 * A task has its turn from when the loop lets it go on to where it waits again, or ends: nothing else in the thread runs
 * meanwhile, so a long turn is what makes the others late.  What a task waited for is not in these times.  The first turn of
 * an eager task is inside that of the task that made it, and is not counted there.
 */
#pragma D option quiet
#pragma D option aggsize=32m

self int depth;
self uint64_t start[int];
self uint64_t inside[int];

python*:::task-step-begin
{
	self->depth++;
	self->start[self->depth] = timestamp;
	self->inside[self->depth] = 0;
}

/* Turns that had begun before are not counted. */
python*:::task-step-end
/self->depth/
{
	this->took = timestamp - self->start[self->depth];
	this->own = this->took - self->inside[self->depth];
	@turns[pid, copyinstr(arg0), copyinstr(arg1)] = count();
	@busy[pid, copyinstr(arg0), copyinstr(arg1)] = sum(this->own);
	@longest[pid, copyinstr(arg0), copyinstr(arg1)] = max(this->own);
	self->start[self->depth] = 0;
	self->inside[self->depth] = 0;
	self->depth--;
	self->inside[self->depth] += this->took;
}
