#!/usr/bin/env -S dtrace -s
/*
 * @summary: sample what Python functions run, read from outside: a tree, without privilege
 * @output: tree
 * @key: pid PID pid
 * @key: stack STACK stack
 * @value: samples SAMPLES samples
 * @reads: hz
 * @option: hz int 97 so many samples for a second of CPU time
 * @note: the kernel's samples are for root: stacks are read from outside instead, as dtap dump does
 *
 * What waits is not there, as in samples of the kernel's: dtap record --sample has it, and dtap dump shows it.
 * A thread whose stack changes while it is read is stopped for some hundred microseconds.
 */
#pragma D option quiet

/* It says which processes: each that has the agent for this. */
python*:::gc-start
{
}
