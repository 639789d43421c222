#!/usr/bin/env -S dtrace -s
/*
 * @summary: sample what Python functions do, on a CPU and waiting: a tree of their time
 * @output: tree
 * @key: pid PID pid
 * @key: stack STACK stack
 * @value: ran - busy
 * @value: waited - self
 * @needs: kernel
 * @otherwise: outside
 * @option: sample int 97 so many samples a second on each CPU
 *
 * Time on a CPU is sampled: each sample stands for a second divided by their number.  Time off it is that of each wait, from where
 * the thread left its CPU until it got one again, which it may have had to wait for.  No call is slower, and calls are not counted.
 * A wait that has begun before the recording, or has not ended with it, is not there: dtap dump shows what waits.
 */
#pragma D option quiet
#pragma D option aggsize=64m
#pragma D option ustackframes=120

self uint64_t left;

profile-$1
/targeted/
{
	@ran[pid, pystack()] = sum(1000000000 / $1);
}

sched:::off-cpu
/targeted/
{
	self->left = timestamp;
	self->where = pystack();
}

sched:::on-cpu
/self->left/
{
	@waited[pid, self->where] = sum(timestamp - self->left);
	self->left = 0;
}
