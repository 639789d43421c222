#!/usr/bin/env -S dtrace -s
/*
 * @summary: the interpreter's lock (GIL): which functions wait for it and keep it, how often and how long
 * @output: table
 * @value: waits WAITS count
 * @value: waited WAITED time
 * @value: longest_wait WAIT-MAX time
 * @value: holds HOLDS count
 * @value: held HELD time
 * @value: longest_hold HELD-MAX time
 * @key: pid PID pid
 * @key: where WHERE stack
 * @sort: held
 * @needs: kernel
 * @option: frames int 3 so many functions of the stack make a row
 * @option: least int 0 only waits and holds of so many microseconds at least
 *
 * A wait is one, however often the thread wakes up to ask for the lock; a lock that was free is none.  HELD is for how long
 * threads had the lock when they gave it back, in the function in which they do so, WAITED how long they had waited when they
 * got it.  A thread that never gives it back has no hold here: dtap dump shows who has it now.
 * Each time that the lock changes hands, waited for or not, costs some microseconds.
 * An interpreter that is free-threaded, of another C library than glibc, or linked with it statically is not seen.
 */
#pragma D option quiet
#pragma D option aggsize=32m

python*:::gil-take
/targeted && arg0 && arg0 / 1000 >= option_least/
{
	@waits[pid, pystack($1)] = count();
	@waited[pid, pystack($1)] = sum(arg0);
	@longest_wait[pid, pystack($1)] = max(arg0);
}

python*:::gil-drop
/targeted && arg0 && arg0 / 1000 >= option_least/
{
	@holds[pid, pystack($1)] = count();
	@held[pid, pystack($1)] = sum(arg0);
	@longest_hold[pid, pystack($1)] = max(arg0);
}
