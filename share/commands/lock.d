#!/usr/bin/env -S dtrace -s
/*
 * @summary: who waits for the GIL and for locks, and how long: by lock and by the Python function that waits
 * @output: table
 * @value: waits WAITS count
 * @value: time TIME time
 * @ratio: average AVERAGE time time waits
 * @value: longest LONGEST time
 * @key: pid PID pid
 * @key: what WHAT word
 * @key: lock LOCK lock
 * @key: where WHERE stack
 * @sort: time
 * @needs: kernel
 * @otherwise: outside
 * @option: frames int 3 so many functions of the stack make a row
 * @option: least int 0 only waits of so many microseconds at least
 *
 * A wait is one sleep in the system call futex: a lock that is free costs none.  A thread that wants the GIL wakes up every 5 ms
 * to ask for it, and each of these sleeps counts.  A wait that has not ended is not here: dtap dump shows it.
 * LOCK is GIL, or an address: id() of a Lock from Python 3.13 on and of an RLock from 3.14 on, before that of its semaphore.
 * WHAT is "lock" for the GIL and all locks of Python (Lock, RLock, Condition, Event, Queue, Thread.join ...), and for
 * conditions and semaphores of C libraries; "mutex" for mutexes of C, the GIL's own among them.
 * WHERE is the Python function that waits, with the line where it begins, and those that called it.
 * Who had the lock meanwhile is not told here: dtap dump names owners.
 */
#pragma D option quiet
#pragma D option aggsize=32m

self uint64_t start;
self uintptr_t lock;
self string what;

/* FUTEX_WAIT is what mutexes use, FUTEX_WAIT_BITSET what conditions and semaphores do. */
syscall::futex:entry
/targeted && ((arg1 & 127) == 0 || (arg1 & 127) == 9)/
{
	self->what = (arg1 & 127) == 0 ? "mutex" : "lock";
	self->lock = arg0;
	self->start = timestamp;
}

/* A thread that Python has parked sleeps on its own stack, where the lock's address is before the semaphore. */
syscall::futex:entry
/self->start && arg0 - uregs[R_RSP] < 16384/
{
	self->lock = *(uintptr_t *)copyin(arg0 - 8, 8) - 16;
}

/* What was not as it was supposed to be is no wait. */
syscall::futex:return
/self->start && errno != EAGAIN && (timestamp - self->start) / 1000 >= option_least/
{
	this->took = timestamp - self->start;
	@waits[pid, self->what, usym(self->lock), pystack($1)] = count();
	@time[pid, self->what, usym(self->lock), pystack($1)] = sum(this->took);
	@longest[pid, self->what, usym(self->lock), pystack($1)] = max(this->took);
}

syscall::futex:return
/self->start/
{
	self->start = 0;
	self->what = "";
	self->lock = 0;
}
