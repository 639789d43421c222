#!/usr/bin/env -S dtrace -s
/*
 * @summary: what calls of some functions wait for: the functions of C that they call, and how long these take
 * @output: table
 * @value: calls CALLS count
 * @value: time TIME time
 * @ratio: average AVERAGE time time calls
 * @value: longest LONGEST time
 * @key: pid PID pid
 * @key: function FUNCTION text
 * @key: called CALLED text
 * @key: caller CALLER text
 * @key: line LINE int
 * @key: file FILE path
 * @functions: required
 * @sort: time
 *
 * Python waits in functions of C: sleep, recv, read, connect, execute of a database, acquire of a lock.  CALLED is one that
 * was called while a call of FUNCTION was going on, by CALLER, which is FUNCTION or a function that it calls, in LINE; a function
 * that computes is there like one that waits.  "(all of it)" are the calls of FUNCTION themselves.
 * What an operator or a with statement does is no call: dtap lock shows who waits for locks.  Of functions of C that call Python,
 * which calls others of C, the outer ones count.  Each call of a function of C in the program costs some ten nanoseconds.
 */
#pragma D option quiet
#pragma D option aggsize=32m

self int depth;
self uint64_t start[int];
self string name[int];
self int inside;
self uint64_t began;

$selected:entry,
$selected:resume
{
	self->depth++;
	self->start[self->depth] = timestamp;
	self->name[self->depth] = probefunc;
}

$selected:return,
$selected:raise,
$selected:yield
/self->depth/
{
	this->took = timestamp - self->start[self->depth];
	@calls[pid, probefunc, "(all of it)", probefunc, 0, ""] = count();
	@time[pid, probefunc, "(all of it)", probefunc, 0, ""] = sum(this->took);
	@longest[pid, probefunc, "(all of it)", probefunc, 0, ""] = max(this->took);
	self->start[self->depth] = 0;
	self->name[self->depth] = "";
	self->depth--;
	self->inside = self->depth ? self->inside : 0;
}

python*:::cfunction-entry
/self->depth/
{
	self->inside++;
	self->began = self->inside == 1 ? timestamp : self->began;
}

python*:::cfunction-return
/self->depth && self->inside && --self->inside == 0/
{
	this->took = timestamp - self->began;
	@calls[pid, self->name[self->depth], copyinstr(arg3), copyinstr(arg1), (int)arg2, copyinstr(arg0)] = count();
	@time[pid, self->name[self->depth], copyinstr(arg3), copyinstr(arg1), (int)arg2, copyinstr(arg0)] = sum(this->took);
	@longest[pid, self->name[self->depth], copyinstr(arg3), copyinstr(arg1), (int)arg2, copyinstr(arg0)] = max(this->took);
}
