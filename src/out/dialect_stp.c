/*
 * SystemTap's output: messages about faults, warnings and skipped handlers, worded as stap does.
 *
 * Man page stap(1), "SAFETY AND SECURITY"; SystemTap's messages.
 */
#include "out/dialect.h"

#include <errno.h>
#include <inttypes.h>

#include "abi/stat.h"
#include "ir/ir.h"
#include "out/error.h"
#include "out/hist_stp.h"
#include "out/printf.h"
#include "out/sink.h"

static const char *fault_format(uint32_t kind)
{
	switch (kind) {
#define STP_FAULT(kind_, text) case ABI_FAULT_##kind_: return text;
#include "stp/faults.def"
#undef STP_FAULT
	default:
		return NULL;
	}
}

/* Print @format, a text of faults.def, with @value for the %d or %x that it may have. */
static void put_fault(struct out_sink *s, const char *format, uint64_t value)
{
	for (; *format; format++) {
		if (format[0] == '%' && format[1] == 'x') {
			out_format(s, "%" PRIx64, value);
			format++;
		} else if (format[0] == '%' && format[1] == 'd') {
			out_format(s, "%" PRId64, (int64_t)value);
			format++;
		} else {
			out_putc(s, *format);
		}
	}
}

static void fault(struct out_sink *s, const char *command, const struct out_fault *f)
{
	const struct ir_near *near = f->near;
	const char *format = near && near->text ? near->text : fault_format(f->fault);

	(void)command;
	out_puts(s, "ERROR: ");
	if (f->fault == ABI_FAULT_ERROR)
		out_puts(s, f->text ? f->text : "");
	else if (format)
		put_fault(s, format, f->value);
	else
		out_format(s, "fault %" PRIu32 " at 0x%" PRIx64, f->fault, f->value);
	if (near && near->what && *near->what) {
		out_format(s, " near %s", near->what);
		if (near->pos.src)
			out_format(s, " at %s:%u:%u", near->pos.src->name, near->pos.line, near->pos.col);
	}
	out_putc(s, '\n');
}

static void warn(struct out_sink *s, const char *text)
{
	out_puts(s, "WARNING: ");
	out_puts(s, text);
	out_putc(s, '\n');
}

static void lost(struct out_sink *s, const char *command, unsigned int kind, uint64_t n, bool tags)
{
	(void)command;
	(void)tags;
	switch (kind) {
	case OUT_DROP_CORRUPT:
		out_format(s, "WARNING: %" PRIu64 " records or keys of traced processes were corrupt and left out.\n", n);
		break;
	case OUT_DROP_NAMELESS:
		out_format(s, "WARNING: %" PRIu64 " stacks or functions of Python have no names: there was no room for more.\n", n);
		break;
	case OUT_DROP_BUDGET:
		out_format(s, "WARNING: %" PRIu64 " times a process was not traced for a while, to keep to the budget.\n", n);
		break;
	case ABI_DROP_RECORD:
		out_format(s, "WARNING: There were %" PRIu64 " transport failures.\n", n);
		break;
	case ABI_DROP_STACK:
		out_format(s, "WARNING: %" PRIu64 " stacks of threads that got the CPU were not known.\n", n);
		break;
	case ABI_DROP_ITER:
		out_format(s, "WARNING: %" PRIu64 " foreach loops had no memory to sort in and did nothing.\n", n);
		break;
	default:
		out_format(s, "WARNING: %" PRIu64 " array elements were lost: there was no room.\n", n);
	}
}

static void too_many(struct out_sink *s)
{
	out_puts(s, "ERROR: Skipped too many probes, check MAXSKIPPED or try again with stap -t for more details.\n");
}

static void summary(struct out_sink *s, uint64_t nfaults, uint64_t nskipped)
{
	out_format(s, "WARNING: Number of errors: %" PRIu64 ", skipped probes: %" PRIu64 "\n", nfaults, nskipped);
}

static int hist(struct out_sink *s, const struct ir_map *m, const uint64_t *words)
{
	struct out_stp_hist h = {
		.linear = m->stat == IR_STAT_LINEAR,
		.start = m->linear[0], .interval = m->linear[2],
		.n = ir_stat_words(m) - ABI_STAT_BUCKETS, .counts = words + ABI_STAT_BUCKETS, .elision = OUT_STP_ELISION,
	};

	if (m->stat != IR_STAT_LOG && m->stat != IR_STAT_LINEAR)
		return -EINVAL;
	out_stp_hist(s, &h);
	return 0;
}

const struct dialect dialect_stp = {
	.conv = out_conv_stp,
	.hist = hist,
	.fault = fault,
	.warn = warn,
	.lost = lost,
	.counts = true,
	.too_many = too_many,
	.summary = summary,
};
