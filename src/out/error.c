#include "out/error.h"

#include "out/sink.h"

const char *out_fault_text(uint32_t fault)
{
	static const char *const texts[] = {
		[ABI_FAULT_NONE] = "unknown fault",
		[ABI_FAULT_BADADDR] = "invalid address",
		[ABI_FAULT_BADALIGN] = "invalid alignment",
		[ABI_FAULT_ILLOP] = "illegal operation",
		[ABI_FAULT_DIVZERO] = "divide-by-zero",
		[ABI_FAULT_NOSCRATCH] = "out of scratch space",
		[ABI_FAULT_KPRIV] = "invalid kernel access",
		[ABI_FAULT_UPRIV] = "invalid user access",
		[ABI_FAULT_TUPOFLOW] = "tuple stack overflow",
		[ABI_FAULT_BADSTACK] = "bad stack",
		[ABI_FAULT_BADSIZE] = "invalid size",
		[ABI_FAULT_BADINDEX] = "index out of bounds",
		[ABI_FAULT_VALUE_KIND] = "an object of another kind",
		[ABI_FAULT_VALUE_NONE] = "no such argument, variable, attribute or item",
		[ABI_FAULT_VALUE_COMPUTED] = "computed by the program's code, which is not run",
		[ABI_FAULT_VALUE_RANGE] = "a number of more than 64 bits",
		[ABI_FAULT_VALUE_UNKNOWN] = "where this interpreter keeps it is not known",
		[ABI_FAULT_VALUE_CHANGES] = "it is being changed at this moment",
	};

	return fault < sizeof(texts) / sizeof(texts[0]) && texts[fault] ? texts[fault] : texts[ABI_FAULT_NONE];
}

static bool is_of_value(uint32_t fault)
{
	return fault >= ABI_FAULT_VALUE_KIND && fault <= ABI_FAULT_VALUE_CHANGES;
}

void out_fault(struct out_sink *s, const char *prog, const struct out_fault *f)
{
	out_format(s, "%s: error in dt_clause_%u for probe ID %u (%s:%s:%s:%s): %s", prog, f->clause, f->id, f->prov,
		   f->mod, f->func, f->name, out_fault_text(f->fault));
	if ((f->fault == ABI_FAULT_BADADDR && f->value != UINT64_MAX) || f->fault == ABI_FAULT_BADALIGN ||
	    f->fault == ABI_FAULT_BADSTACK || f->fault == ABI_FAULT_BADSIZE || (f->value && is_of_value(f->fault)))
		out_format(s, " (0x%llx)", (unsigned long long)f->value);
	if (f->fault == ABI_FAULT_BADINDEX)
		out_format(s, " (%lld)", (long long)f->value);
	if (f->pc >= 0)
		out_format(s, " at BPF pc %lld", (long long)f->pc);
	out_putc(s, '\n');
}

/* The kinds, with libdtrace's numbers and names (dtrace.h, enum dtrace_dropkind). */
static const struct {
	int number;
	const char *name, *tag, *what, *behind;
} drops[OUT_DROP_MAX] = {
	[ABI_DROP_RECORD] = { 0, "record", "DTRACEDROP_PRINCIPAL", "drop", "" },
	[ABI_DROP_AGG] = { 1, "aggregation", "DTRACEDROP_AGGREGATION", "aggregation drop", "" },
	[ABI_DROP_DYNVAR] = { 2, "variable", "DTRACEDROP_DYNAMIC", "dynamic variable drop", "" },
	[ABI_DROP_ITER] = { 2, "iteration", "DTRACEDROP_DYNAMIC", "iteration drop", "" },
	[ABI_DROP_LOCK] = { 0, "lock", "DTRACEDROP_PRINCIPAL", "drop", " (variables locked)" },
	[ABI_DROP_BUSY] = { 0, "scratch", "DTRACEDROP_PRINCIPAL", "drop", " (all scratch space busy)" },
	[ABI_DROP_STACK] = { 0, "stack", "DTRACEDROP_PRINCIPAL", "drop", " (unknown stack of a thread that got the CPU)" },
	[OUT_DROP_CORRUPT] = { 0, "corrupt", "DTRACEDROP_PRINCIPAL", "drop", " (corrupt data of a traced process)" },
	[OUT_DROP_NAMELESS] = { 0, "name", "DTRACEDROP_PRINCIPAL", "name drop", " (no room for what a stack is: see the namesize option)" },
	[OUT_DROP_BUDGET] = { 0, "budget", "DTRACEDROP_PRINCIPAL", "drop", " (a process not traced for a while: see the budget option)" },
	[OUT_DROP_SPEC] = { 5, "speculation", "DTRACEDROP_SPEC", "speculative drop", "" },
	[OUT_DROP_SPEC_NONE] = { 7, "no_speculation", "DTRACEDROP_SPECUNAVAIL", "failed speculation", " (no speculative buffer available)" },
};

const char *out_drop_name(unsigned int kind)
{
	return kind < OUT_DROP_MAX ? drops[kind].name : "unknown";
}

int out_drop_number(unsigned int kind)
{
	return kind < OUT_DROP_MAX ? drops[kind].number : -1;
}

void out_drop_words(struct out_sink *s, unsigned int kind, uint64_t n)
{
	if (kind < OUT_DROP_MAX)
		out_format(s, "%llu %s%s%s", (unsigned long long)n, drops[kind].what, n > 1 ? "s" : "", drops[kind].behind);
}

void out_drops(struct out_sink *s, const char *prog, unsigned int kind, uint64_t n, int cpu, bool tags)
{
	if (!n || kind >= OUT_DROP_MAX)
		return;
	out_format(s, "%s: ", prog);
	if (tags)
		out_format(s, "[%s] ", drops[kind].tag);
	out_drop_words(s, kind, n);
	if (cpu >= 0 && kind != ABI_DROP_DYNVAR)
		out_format(s, " on CPU %d", cpu);
	out_putc(s, '\n');
}
