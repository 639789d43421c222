#!/usr/bin/env -S dtrace -Zs
/*
 * py_profile.d - where Python programs spend their time, sampled 97 times a second on each CPU.
 *
 *	py_profile.d [-c COMMAND]
 *
 *	FILE FUNC	the Python function that was running
 *	CODE		the C function that it was in, or the module where its name is not known
 */
#pragma D option quiet
#pragma D option aggsortrev

dtrace:::BEGIN { printf("Sampling... Hit Ctrl-C to end.\n"); }

python*:::function-entry
{
	self->depth++;
	self->file[self->depth] = basename(copyinstr(arg0));
	self->func[self->depth] = copyinstr(arg1);
}

python*:::function-return
/self->depth/
{
	self->file[self->depth] = "";
	self->func[self->depth] = "";
	self->depth--;
}

profile:::profile-97
/self->depth/
{
	@funcs[self->file[self->depth], self->func[self->depth]] = count();
	@code[self->file[self->depth], self->func[self->depth], ufunc(arg1)] = count();
}

dtrace:::END
{
	printf("\nSamples by Python function,\n   %-32s %-32s %8s\n", "FILE", "FUNC", "SAMPLES");
	printa("   %-32s %-32s %@8d\n", @funcs);
	printf("\nSamples by the code that ran,\n   %-24s %-24s %-32s %8s\n", "FILE", "FUNC", "CODE", "SAMPLES");
	printa("   %-24s %-24s %-32A %@8d\n", @code);
}
