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
	};

	return texts[fault < sizeof(texts) / sizeof(texts[0]) ? fault : ABI_FAULT_NONE];
}

void out_fault(struct out_sink *s, const char *prog, const struct out_fault *f)
{
	out_format(s, "%s: error on enabled probe ID %u (ID %u: %s:%s:%s:%s): %s", prog, f->epid, f->id, f->prov,
		   f->mod, f->func, f->name, out_fault_text(f->fault));
	if (f->fault == ABI_FAULT_BADADDR || f->fault == ABI_FAULT_BADALIGN)
		out_format(s, " (0x%llx)", (unsigned long long)f->value);
	if (f->action)
		out_format(s, " in action #%u", f->action);
	else
		out_puts(s, " in predicate");
	if (f->off >= 0)
		out_format(s, " at DIF offset %lld", (long long)f->off);
	out_putc(s, '\n');
}

/* The kinds, with libdtrace's numbers and names (dtrace.h, enum dtrace_dropkind). */
static const struct {
	int number;
	const char *tag, *what, *behind;
} drops[OUT_DROP_MAX] = {
	[ABI_DROP_RECORD] = { 0, "DTRACEDROP_PRINCIPAL", "drop", "" },
	[ABI_DROP_AGG] = { 1, "DTRACEDROP_AGGREGATION", "aggregation drop", "" },
	[ABI_DROP_DYNVAR] = { 2, "DTRACEDROP_DYNAMIC", "dynamic variable drop", "" },
	[ABI_DROP_ITER] = { 2, "DTRACEDROP_DYNAMIC", "iteration drop", "" },
	[ABI_DROP_LOCK] = { 0, "DTRACEDROP_PRINCIPAL", "drop", " (variables locked)" },
	[ABI_DROP_BUSY] = { 0, "DTRACEDROP_PRINCIPAL", "drop", " (all scratch space busy)" },
	[OUT_DROP_SPEC] = { 5, "DTRACEDROP_SPEC", "speculative drop", "" },
	[OUT_DROP_SPEC_NONE] = { 7, "DTRACEDROP_SPECUNAVAIL", "failed speculation", " (no speculative buffer available)" },
};

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
