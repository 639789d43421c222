#!/usr/bin/env -S dtrace -Zs
/*
 * py_cpudist.d - times on a CPU of Python functions, as distributions, in microseconds.
 *
 *	py_cpudist.d [-c COMMAND]
 *
 * Of each process, by id, file and function.  Exclusive is the time in a function itself, inclusive with what it calls.  A function that is still running at the end
 * is not counted, nor is one that the script did not see start.
 */
#pragma D option quiet
#pragma D option family
#pragma D option aggsortrev
#pragma D option aggsize=32m

self uint64_t inner[int];	/* its first value would make it an int, which holds four seconds */

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python*:::function-entry
{
	self->depth++;
	self->inner[self->depth] = 0;
	self->start[self->depth] = vtimestamp;
}

python*:::function-return
/self->start[self->depth]/
{
	this->inclusive = vtimestamp - self->start[self->depth];
	this->exclusive = this->inclusive - self->inner[self->depth];
	self->start[self->depth] = 0;
	self->inner[self->depth] = 0;
	this->file = basename(copyinstr(arg0));
	this->func = copyinstr(arg1);
	@exclusive[pid, this->file, this->func] = quantize(this->exclusive / 1000);
	@inclusive[pid, this->file, this->func] = quantize(this->inclusive / 1000);
	self->depth--;
	self->inner[self->depth] += this->inclusive;
}

dtrace:::END
{
	printf("\nExclusive CPU times (us),\n");
	printa("   %d, %s, %s %@d\n", @exclusive);
	printf("\nInclusive CPU times (us),\n");
	printa("   %d, %s, %s %@d\n", @inclusive);
}
