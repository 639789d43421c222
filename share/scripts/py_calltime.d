#!/usr/bin/env -S dtrace -Zs
/*
 * py_calltime.d - elapsed times of Python functions, in microseconds.
 *
 *	py_calltime.d [-c COMMAND]
 *
 * Of each process, which is PID.  Exclusive is the time in a function itself, inclusive with what it calls.  A function that is still running at the end
 * is not counted, nor is one that the script did not see start.
 */
#pragma D option quiet
#pragma D option family
#pragma D option aggsortrev

self uint64_t inner[int];	/* its first value would make it an int, which holds four seconds */

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python*:::function-entry
{
	self->depth++;
	self->inner[self->depth] = 0;
	self->start[self->depth] = timestamp;
}

python*:::function-return
/self->start[self->depth]/
{
	this->inclusive = timestamp - self->start[self->depth];
	this->exclusive = this->inclusive - self->inner[self->depth];
	self->start[self->depth] = 0;
	self->inner[self->depth] = 0;
	this->file = basename(copyinstr(arg0));
	this->func = copyinstr(arg1);
	@calls[pid, this->file, this->func] = count();
	@exclusive[pid, this->file, this->func] = sum(this->exclusive / 1000);
	@inclusive[pid, this->file, this->func] = sum(this->inclusive / 1000);
	self->depth--;
	self->inner[self->depth] += this->inclusive;
}

dtrace:::END
{
	printf("\nCount,\n   %6s %-32s %-32s %10s\n", "PID", "FILE", "FUNC", "CALLS");
	printa("   %6d %-32s %-32s %@10d\n", @calls);
	printf("\nExclusive elapsed times (us),\n   %6s %-32s %-32s %10s\n", "PID", "FILE", "FUNC", "TOTAL");
	printa("   %6d %-32s %-32s %@10d\n", @exclusive);
	printf("\nInclusive elapsed times (us),\n   %6s %-32s %-32s %10s\n", "PID", "FILE", "FUNC", "TOTAL");
	printa("   %6d %-32s %-32s %@10d\n", @inclusive);
}
