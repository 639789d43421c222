#!/usr/bin/env -S dtrace -s
/*
 * @summary: sample what Python functions do, read from outside, on a CPU and waiting: a tree of their time
 * @output: tree
 * @key: pid PID pid
 * @key: stack STACK stack
 * @value: ran - busy
 * @value: waited - self
 * @reads: sample
 * @option: sample int 97 so many readings a second
 * @note: the kernel's samples are for root: stacks are read from outside instead, as dtap dump does
 *
 * The time of each thread is exact, on a CPU and off it: that between two readings belongs to the stack of the second.
 * So what took less than the time between them has it by chance, as in all samples.  No call is slower, and calls are not counted.
 * A thread whose stack changes while it is read is stopped for some hundred microseconds.
 */
#pragma D option quiet

/* It says which processes: each that has the agent for this. */
python*:::gc-start
{
}
