#!/usr/bin/env -S dtrace -s
/*
 * @summary: how long calls of some functions take, as a distribution
 * @output: distribution
 * @key: function FUNCTION text
 * @key: module MODULE text
 * @key: pid PID pid
 * @key: by BY text
 * @value: calls calls count
 * @value: average average time
 * @value: longest longest time
 * @value: took TOOK time
 * @functions: required
 * @option: by text - the parameter whose values have a distribution each
 *
 * The number behind a bar is how many calls took as long as it says, or up to twice as long.  A generator or coroutine
 * that stops and goes on later is called anew then.  Other functions cost nothing.  With --by PARAMETER each value of that
 * parameter, as repr() has it when the call begins, has a distribution of its own; a call that has no such one is an
 * error, which is told.
 */
#pragma D option quiet

self int depth;
self uint64_t start[int];
self string by[int];

$selected:entry,
$selected:resume
{
	self->depth++;
	self->start[self->depth] = timestamp;
	self->by[self->depth] = "";
}

$selected:entry,
$selected:resume
/option_by != "-"/
{
	self->by[self->depth] = pyshow(pyarg(option_by));
}

$selected:return,
$selected:raise,
$selected:yield
/self->depth/
{
	this->took = timestamp - self->start[self->depth];
	self->start[self->depth] = 0;
	self->depth--;
	@calls[probefunc, probemod, pid, self->by[self->depth + 1]] = count();
	@average[probefunc, probemod, pid, self->by[self->depth + 1]] = avg(this->took);
	@longest[probefunc, probemod, pid, self->by[self->depth + 1]] = max(this->took);
	@took[probefunc, probemod, pid, self->by[self->depth + 1]] = quantize(this->took);
}
