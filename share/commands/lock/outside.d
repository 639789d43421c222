#!/usr/bin/env -S dtrace -s
/*
 * @summary: who waits for the GIL and for locks, read from outside: by lock, by who has it, and by the Python function that waits
 * @output: table
 * @value: waits WAITS count
 * @value: time TIME time
 * @ratio: average AVERAGE time time waits
 * @value: longest LONGEST time
 * @key: pid PID pid
 * @key: what WHAT word
 * @key: lock LOCK text
 * @key: owner OWNER pid
 * @key: where WHERE stack
 * @sort: time
 * @reads: hz
 * @option: hz int 97 so many readings a second
 * @option: frames int 3 so many functions of the stack make a row
 * @note: system calls are for root: waits are read from outside instead, as dtap dump does; what is shorter than a reading may not be there
 *
 * Each reading asks each thread what it waits for: the GIL, a lock, or a thread's end (join).  A thread that waits for the same one
 * at two readings, at the same place, has waited once, and so long.  LOCK is its type and address, what id() gives in Python;
 * OWNER the thread that has it, of an RLock and of a thread that is waited for; 0: it is not known.  A wait without an end is here, too.
 * Of free-threaded Pythons, and of 3.10 and 3.12 for the GIL, it is not known what a thread waits for.
 */
#pragma D option quiet

/* It says which processes: each that has the agent for this. */
python*:::gc-start
{
}
