#!/usr/bin/env -S dtrace -s
/*
 * @summary: show each call of some functions when it ends: its arguments, its result or exception, how long it took
 * @output: events
 * @field: time TIME clock
 * @field: pid PID pid
 * @field: tid TID pid
 * @field: duration DURATION time
 * @field: end END word
 * @field: depth - indent
 * @field: function FUNCTION text
 * @field: line LINE int
 * @field: arguments ARGUMENTS text
 * @field: result RESULT text
 * @field: module MODULE text
 * @functions: required
 * @option: least int 0 only calls that took so many microseconds at least
 *
 * The time is that of the call's beginning, the line that of its end: by return, by raise if an exception left the
 * function, or by yield if a generator or coroutine stopped, whose going on is a call again.  Calls in calls of these
 * functions are indented; they end, and stand, before those.  Other functions cost nothing.
 *
 * Arguments are those of the call's beginning, the result is what was returned or yielded, or the exception: as repr() has
 * them, but no __repr__ of the program's is run; what is longer than 250 characters ends in dots.
 */
#pragma D option quiet

self int depth;
self uint64_t start[int];
self string arguments[int];

$selected:entry,
$selected:resume
{
	self->depth++;
	self->start[self->depth] = timestamp;
}

$selected:entry,
$selected:resume
/self->depth <= 100/
{
	self->arguments[self->depth] = pyargs();
}

$selected:return,
$selected:raise,
$selected:yield
/self->depth/
{
	this->took = timestamp - self->start[self->depth];
	self->took = this->took;
	self->began = self->start[self->depth];
	self->start[self->depth] = 0;
	self->depth--;
}

$selected:return,
$selected:raise,
$selected:yield
/self->began && self->took / 1000 >= option_least/
{
	printf("%d %d %d %d %s %d %s %d %s %s %s\n", self->began, pid, tid, self->took, probename, self->depth, probefunc, arg2,
	    self->arguments[self->depth + 1], pyresult(), probemod);
}

$selected:return,
$selected:raise,
$selected:yield
/self->began/
{
	self->arguments[self->depth + 1] = "";
	self->began = 0;
}

/* No line: in a trace for Perfetto each task has a track of its own. */
python*:::task-step-begin,
python*:::task-step-end
{
	printf("%d %d %d %s\n", timestamp, pid, tid, copyinstr(arg0));
}
