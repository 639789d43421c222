#!/usr/bin/env -S dtrace -s
/*
 * @summary: memory of Python objects by where it was allocated: what is still in use, what leaks, how much a second
 * @output: table
 * @level: live LIVE count
 * @level: blocks BLOCKS count
 * @value: allocs ALLOCS count
 * @value: allocated ALLOCATED count
 * @rate: rate RATE/S count allocated
 * @key: pid PID pid
 * @key: where WHERE stack
 * @sort: live
 * @option: frames int 3 so many functions of the stack make a row
 * @option: least int 1 only blocks of so many bytes at least
 *
 * LIVE bytes in BLOCKS were allocated while this ran and were not freed until it ended, or until the program began to end:
 * what grows with each run of the same work is a leak.  With -i they are what there is at the end of the interval, of all
 * since the start, and the other columns what was allocated in it.  ALLOCATED bytes in ALLOCS are all that was allocated,
 * also what was freed again.  WHERE is the function that allocated it, with its line,
 * and those that called it.  A list or dictionary that grows is allocated anew where it does.
 * Each allocation costs about a microsecond: --least leaves the many small ones out.
 */
#pragma D option quiet
#pragma D option aggsize=64m
#pragma D option dynvarsize=128m

uint64_t size[int, uintptr_t];

python*:::memory-alloc
/arg1 >= option_least/
{
	at[pid, arg2] = pystack($1, "line");
	size[pid, arg2] = arg1;
}

/* What there was no room for is left out here, and told at the end. */
python*:::memory-alloc
/arg1 >= option_least && size[pid, arg2] && at[pid, arg2]/
{
	@live[pid, at[pid, arg2]] = sum(arg1);
	@blocks[pid, at[pid, arg2]] = sum(1);
	@allocs[pid, at[pid, arg2]] = count();
	@allocated[pid, at[pid, arg2]] = sum(arg1);
}

python*:::memory-free
/size[pid, arg1]/
{
	this->size = (int64_t)size[pid, arg1];
	@live[pid, at[pid, arg1]] = sum(-this->size);
	@blocks[pid, at[pid, arg1]] = sum(-1);
	size[pid, arg1] = 0;
	at[pid, arg1] = 0;
}
