#!/usr/bin/env -S dtrace -s
/*
 * @summary: sample what Python functions the CPUs run: a tree, at little cost
 * @output: tree
 * @key: pid PID pid
 * @key: stack STACK stack
 * @value: samples SAMPLES samples
 * @needs: kernel
 * @otherwise: outside
 * @option: hz int 97 so many samples a second on each CPU
 *
 * What waits is not there: it runs on no CPU.  dtap dump shows what a process that waits is doing, dtap record counts
 * all time.  The suffix of -o's file says what is written, as with dtap record.
 */
#pragma D option quiet
#pragma D option aggsize=64m
#pragma D option ustackframes=120

profile-$1
/targeted && arg1/
{
	@samples[pid, pystack()] = count();
}
