#!/usr/bin/env -S dtrace -Zs
/*
 * py_malloc.d - which Python functions allocate memory from the C library, and how much.
 *
 *	py_malloc.d -c COMMAND
 *	py_malloc.d -p PID
 *
 * CPython gives small objects memory of its own, which it takes from the system in large pieces: what is seen here is
 * what is larger than 512 bytes, and libraries.  PYTHONMALLOC=malloc in the environment shows all.
 */
#pragma D option quiet
#pragma D option aggsortrev

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
	@bytes[self->file[self->depth], self->func[self->depth]] = sum(arg0);
	@calls[self->file[self->depth], self->func[self->depth]] = count();
	@sizes[self->file[self->depth], self->func[self->depth]] = quantize(arg0);
}

dtrace:::END
{
	printf("\nmalloc() bytes by Python function,\n   %-32s %-32s %8s %12s\n", "FILE", "FUNC", "CALLS", "BYTES");
	printa("   %-32s %-32s %@8d %@12d\n", @calls, @bytes);
	printf("\nmalloc() sizes by Python function,\n");
	printa("   %s, %s %@d\n", @sizes);
}
