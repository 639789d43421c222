#!/usr/bin/env -S dtrace -s
/*
 * @summary: how long the import of each module takes
 * @output: table
 * @value: self SELF time
 * @value: total TOTAL time
 * @value: times TIMES count
 * @value: found FOUND count
 * @key: pid PID pid
 * @key: module MODULE text
 * @sort: total
 *
 * Self is without the modules that it imports in turn.  FOUND is how many of these imports found the module.
 */
#pragma D option quiet

self int depth;
self uint64_t start[int];
self uint64_t inner[int];

python*:::import-find-load-start
{
	self->depth++;
	self->start[self->depth] = timestamp;
	self->inner[self->depth] = 0;
}

python*:::import-find-load-done
/self->depth/
{
	this->took = timestamp - self->start[self->depth];
	@times[pid, copyinstr(arg0)] = count();
	@found[pid, copyinstr(arg0)] = sum((int64_t)arg1);
	@total[pid, copyinstr(arg0)] = sum(this->took);
	@self[pid, copyinstr(arg0)] = sum(this->took - self->inner[self->depth]);
	self->start[self->depth] = 0;
	self->inner[self->depth] = 0;
	self->depth--;
	self->inner[self->depth] += this->took;
}
