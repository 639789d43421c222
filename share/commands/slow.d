#!/usr/bin/env -S dtrace -s
/*
 * @summary: how long calls of some functions take, as a distribution, and the slowest calls
 * @output: distribution
 * @key: function FUNCTION text
 * @key: module MODULE text
 * @key: pid PID pid
 * @key: by BY text
 * @value: calls calls count
 * @value: average average time
 * @value: longest longest time
 * @value: took TOOK time
 * @field: duration DURATION time
 * @field: began WHEN clock
 * @field: pid PID pid
 * @field: tid TID pid
 * @field: function FUNCTION text
 * @field: ended END word
 * @field: arguments ARGUMENTS text
 * @functions: required
 * @addition: waits what the slowest calls waited for, too: the function of C that took longest, with its arguments
 * @option: by text - the parameter whose values have a distribution each; :task is asyncio's task
 *
 * The number behind a bar is how many calls took as long as it says, or up to twice as long.  A generator or coroutine
 * that stops and goes on later is called anew then.  Other functions cost nothing.  With --by PARAMETER each value of that
 * parameter, as repr() has it when the call begins, has a distribution of its own; a call that has no such one is an
 * error, which is told.  With --by :task each of asyncio's tasks has one, by its name; (none) is outside of tasks.
 *
 * The slowest calls, up to ten or -n, are those of all that took at least half as long as the longest: when they began, how they
 * ended, and their arguments as these were then, at the end.  --waits tells what they waited for, dtap waits what all did.
 */
#pragma D option quiet

self int depth;
self uint64_t start[int];
self string by[int];
self uint64_t longest;
self uint64_t began;
self uint64_t took;

$selected:entry,
$selected:resume
{
	self->depth++;
	self->start[self->depth] = timestamp;
	self->by[self->depth] = "";
}

$selected:entry,
$selected:resume
/option_by != "-" && option_by != ":task"/
{
	self->by[self->depth] = pyshow(pyarg(option_by));
}

$selected:entry,
$selected:resume
/option_by == ":task"/
{
	self->by[self->depth] = pytask != "" ? pytask : "(none)";
}

$selected:return,
$selected:raise,
$selected:yield
/self->depth/
{
	this->took = timestamp - self->start[self->depth];
	self->began = this->took >= self->longest / 2 ? self->start[self->depth] : 0;
	self->took = this->took;
	self->longest = this->took > self->longest ? this->took : self->longest;
	self->start[self->depth] = 0;
	self->depth--;
	@calls[probefunc, probemod, pid, self->by[self->depth + 1]] = count();
	@average[probefunc, probemod, pid, self->by[self->depth + 1]] = avg(this->took);
	@longest[probefunc, probemod, pid, self->by[self->depth + 1]] = max(this->took);
	@took[probefunc, probemod, pid, self->by[self->depth + 1]] = quantize(this->took);
}

/* Only what may be among the slowest. */
$selected:return,
$selected:raise,
$selected:yield
/self->began && !option_waits/
{
	printf("%d %d %d %d %s %s %s\n", self->took, self->began, pid, tid, probefunc, probename, pyargs());
	self->began = 0;
}
