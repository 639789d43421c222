#!/usr/bin/env -S dtrace -s
/*
 * @summary: show calls and returns as they happen, indented, with the time of each call
 * @output: events
 * @field: time TIME clock
 * @field: pid PID pid
 * @field: tid TID pid
 * @field: duration DURATION time
 * @field: depth - indent
 * @field: event - arrow
 * @field: function FUNCTION text
 * @field: line LINE int
 * @field: file FILE path
 * @functions: optional
 *
 * Of FUNCTION what happens in it: its calls, and all that they call.  A call stands at its time and with its line, a
 * return with the time that the call took.
 */
#pragma D option quiet

self int depth;
self uint64_t start[int];

python*:::function-entry
/self->depth || selected/
{
	printf("%d %d %d %d %d %d %s %d %s\n", timestamp, pid, tid, -1, self->depth, 1, copyinstr(arg1), arg2, copyinstr(arg0));
	self->depth++;
	self->start[self->depth] = timestamp;
}

python*:::function-return
/self->depth/
{
	this->took = timestamp - self->start[self->depth];
	self->start[self->depth] = 0;
	self->depth--;
	printf("%d %d %d %d %d %d %s %d %s\n", timestamp, pid, tid, this->took, self->depth, 0, copyinstr(arg1), arg2,
	    copyinstr(arg0));
}

/* No line: in a trace for Perfetto each task has a track of its own. */
python*:::task-step-begin,
python*:::task-step-end
{
	printf("%d %d %d %s\n", timestamp, pid, tid, copyinstr(arg0));
}
