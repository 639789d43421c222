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

void out_drops(struct out_sink *s, const char *prog, enum abi_drop kind, uint64_t n, int cpu)
{
	static const struct {
		const char *what, *behind;
	} words[ABI_DROP_MAX] = {
		[ABI_DROP_RECORD] = { "drop", "" },
		[ABI_DROP_AGG] = { "aggregation drop", "" },
		[ABI_DROP_DYNVAR] = { "dynamic variable drop", "" },
		[ABI_DROP_ITER] = { "iteration drop", "" },
		[ABI_DROP_LOCK] = { "drop", " (variables locked)" },
		[ABI_DROP_BUSY] = { "drop", " (all scratch space busy)" },
	};

	if (!n || kind >= ABI_DROP_MAX)
		return;
	out_format(s, "%s: %llu %s%s%s", prog, (unsigned long long)n, words[kind].what, n > 1 ? "s" : "",
		   words[kind].behind);
	if (cpu >= 0 && kind != ABI_DROP_DYNVAR)
		out_format(s, " on CPU %d", cpu);
	out_putc(s, '\n');
}
