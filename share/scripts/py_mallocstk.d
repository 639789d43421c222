#!/usr/bin/env -S dtrace -Zs
/*
 * py_mallocstk.d - from where a Python program allocates memory of the C library: its own function, and C frames.
 *
 *	py_mallocstk.d -c COMMAND
 *	py_mallocstk.d -p PID
 *
 * Behind the C frames that run Python stand its functions, as [ file:line (function) ].
 */
#pragma D option quiet
#pragma D option aggsortrev
#pragma D option ustackframes=8

dtrace:::BEGIN { printf("Tracing... Hit Ctrl-C to end.\n"); }

python$target:::function-entry
{
	self->depth++;
	self->file[self->depth] = basename(copyinstr(arg0));
	self->func[self->depth] = copyinstr(arg1);
}

python$target:::function-return
/self->depth/
{
	self->file[self->depth] = "";
	self->func[self->depth] = "";
	self->depth--;
}

pid$target:libc[.-]*:malloc:entry
/self->depth/
{
	@sizes[self->file[self->depth], self->func[self->depth], ustack()] = quantize(arg0);
}

dtrace:::END
{
	printf("\nmalloc() sizes by Python function and stack,\n");
	printa("\n   %s, %s%k%@d\n", @sizes);
}
