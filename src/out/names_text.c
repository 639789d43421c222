/*
 * Stacks and addresses as text, for DTrace and SystemTap.
 */
#include "out/names_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "out/sink.h"
#include "probe/pycode.h"

/* --- DTrace --------------------------------------------------------------------------------------------- */

void names_as_numbers(struct names *n, bool on)
{
	n->numbers = on;
}

/* As DTrace for Linux prints them under noresolve: "libc.so.6:0x7f12". */
static const char *number_text(const struct frame *f, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s0x%" PRIx64, f->sym.mod ? f->sym.mod : "", f->sym.mod ? ":" : "", f->sym.addr);
	return buf;
}

static const char *frame_text(const struct frame *f, enum ir_show show, char *buf, size_t size)
{
	if (f->code && f->instr >= 0)
		snprintf(buf, size, "[ %s:%" PRIu32 " (%s+0x%" PRIx32 ") ]", f->code->file, f->line, f->code->name, (uint32_t)f->instr);
	else if (f->code)
		snprintf(buf, size, "[ %s:%" PRIu32 " (%s) ]", f->code->file, f->line, f->code->name);
	else if (!f->sym.mod)
		snprintf(buf, size, "0x%" PRIx64, f->sym.addr);
	else if (show == IR_SHOW_MOD)
		snprintf(buf, size, "%s", f->sym.mod);
	else if (!f->sym.func)
		snprintf(buf, size, "%s`0x%" PRIx64, f->sym.mod, f->sym.addr);
	else if (show == IR_SHOW_SYM || !f->sym.off)
		snprintf(buf, size, "%s`%s", f->sym.mod, f->sym.func);
	else
		snprintf(buf, size, "%s`%s+0x%" PRIx64, f->sym.mod, f->sym.func, f->sym.off);
	return buf;
}

const char *names_kernel(struct names *n, uint64_t addr, char *buf, size_t size)
{
	struct frame f = { .sym.addr = addr };

	symbols_kernel(n->symbols, &f.sym);
	return frame_text(&f, IR_SHOW_ADDR, buf, size);
}

void names_put_stack(const struct names *n, struct out_sink *s, uint64_t number, unsigned int indent)
{
	const struct stack *st = names_stack(n, number);
	char text[2048];

	out_putc(s, '\n');
	for (uint32_t i = 0; st && i < st->nframes; i++) {
		out_pad(s, ' ', indent);
		out_puts(s, n->numbers && st->user && !st->frames[i].code ?
				    number_text(&st->frames[i], text, sizeof(text)) :
				    frame_text(&st->frames[i], IR_SHOW_STACK, text, sizeof(text)));
		out_putc(s, '\n');
	}
}

const char *names_text(const struct names *n, enum ir_show show, uint64_t number, char *buf, size_t size)
{
	const struct stack *st = names_stack(n, number);

	if (st && st->nframes && n->numbers && st->user && show != IR_SHOW_MOD)
		return number_text(&st->frames[0], buf, size);
	if (st && st->nframes)
		return frame_text(&st->frames[0], show, buf, size);
	snprintf(buf, size, "?");
	return buf;
}

/* The number that @key has had first; that is @number if there was none.  NULL: no room. */
static const uint64_t *first_of(struct names *n, const void *key, size_t size, uint64_t number)
{
	uint64_t *first = bytemap_get(&n->texts, key, size);

	if (first || names_full(n))
		return first;
	first = arena_alloc(n->arena, sizeof(*first));
	*first = number;
	return bytemap_set(&n->texts, key, size, first) ? NULL : first;
}

static void digest_add(uint64_t digest[2], uint64_t v)
{
	digest[0] = (digest[0] ^ v) * 0x9e3779b97f4a7c15;
	digest[0] ^= digest[0] >> 32;
	digest[1] = (digest[1] ^ v) * 0xe7037ed1a0b428db;
	digest[1] ^= digest[1] >> 29;
}

static void digest_text(uint64_t digest[2], const char *text)
{
	do
		digest_add(digest, (uint8_t)*text);
	while (*text++);
}

/* Of what is shown of a stack.  False: it has no frames of Python, so that another number has other frames. */
static bool digest_of(const struct stack *st, uint64_t digest[2])
{
	bool python = false;

	digest[0] = digest[1] = st->pid;
	for (uint32_t i = 0; i < st->nframes; i++) {
		const struct frame *f = &st->frames[i];

		digest_add(digest, f->code ? f->line : f->sym.addr);
		if (!f->code)
			continue;
		python = true;
		if (st->by_instr)
			digest_add(digest, (uint32_t)f->instr);
		digest_text(digest, f->code->file);
		digest_text(digest, f->code->name);
	}
	return python;
}

static uint64_t same_stack(struct names *n, uint64_t number)
{
	struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));
	uint64_t digest[2];

	if (!st || !st->user)
		return number;
	if (!st->same && digest_of(st, digest))
		st->same = first_of(n, digest, sizeof(digest), number);
	return st->same ? *st->same : number;
}

uint64_t names_same(struct names *n, enum ir_show show, uint64_t number)
{
	const uint64_t *first;
	const struct stack *st;
	char text[512 + 16];
	int len;

	if (show == IR_SHOW_STACK)
		return same_stack(n, number);
	if (show != IR_SHOW_SYM && show != IR_SHOW_MOD)
		return number;
	st = names_stack(n, number);
	if (!st || !st->nframes)
		return number;
	len = snprintf(text, 17, "%08x%d", st->pid, st->user);
	frame_text(&st->frames[0], show, text + len, sizeof(text) - (size_t)len);
	first = first_of(n, text, strlen(text), number);
	return first ? *first : number;
}

/* --- SystemTap ---------------------------------------------------------------------------------------- */

/* "function+0x1/0x10"; without the size if @size is false or it is not known. */
static void put_location(struct out_sink *s, const struct frame *f, bool size)
{
	out_format(s, "%s+0x%" PRIx64, f->sym.func, f->sym.off);
	if (size && f->sym.size)
		out_format(s, "/0x%" PRIx64, f->sym.size);
}

static void put_source(struct out_sink *s, const struct frame *f, enum ir_show show)
{
	const char *file;
	int line;

	if (!symbol_source(&f->sym, false, &file, &line))
		out_format(s, "0x%" PRIx64, f->sym.addr);
	else if (show == IR_SHOW_LINE)
		out_format(s, "%d", line);
	else if (show == IR_SHOW_SOURCE)
		out_puts(s, file);
	else
		out_format(s, "%s:%d", file, line);
}

static void put_frame(struct out_sink *s, const struct frame *f, enum ir_show show, bool is_caller)
{
	const char *file;
	int line;

	switch (show) {
	case IR_SHOW_SOURCE:
	case IR_SHOW_LINE:
	case IR_SHOW_SOURCE_LINE:
		put_source(s, f, show);
		return;
	case IR_SHOW_ADDRS:
		out_format(s, "%s0x%" PRIx64, is_caller ? " " : "", f->sym.addr);
		return;
	case IR_SHOW_ADDRS_EACH:
		out_format(s, "0x%" PRIx64 " ", f->sym.addr);
		return;
	case IR_SHOW_PATH:
		out_puts(s, f->sym.path ? f->sym.path : "<unknown>");
		return;
	case IR_SHOW_FRAMES_FULL:
	case IR_SHOW_FRAMES_SOURCE:
		out_format(s, " 0x%" PRIx64, f->sym.addr);
		if (f->sym.func) {
			out_puts(s, " : ");
			put_location(s, f, true);
		}
		if (show == IR_SHOW_FRAMES_SOURCE && symbol_source(&f->sym, is_caller, &file, &line))
			out_format(s, " at %s:%d", file, line);
		break;
	case IR_SHOW_FUNC:
		if (f->sym.func)
			out_puts(s, f->sym.func);
		else
			out_format(s, "0x%" PRIx64, f->sym.addr);
		return;
	default:
		if (f->sym.func)
			put_location(s, f, show == IR_SHOW_FUNC_SIZE);
		else
			out_format(s, "0x%" PRIx64, f->sym.addr);
	}
	if (show != IR_SHOW_FRAMES_BRIEF && f->sym.path) {
		out_format(s, " [%s", show == IR_SHOW_FRAMES_FILE ? f->sym.mod : f->sym.path);
		if (!f->sym.func)
			out_format(s, "+0x%" PRIx64, f->sym.mod_off);
		out_putc(s, ']');
	}
}

bool names_knows(const struct names *n, uint64_t number)
{
	return names_stack(n, number) != NULL;
}

void names_put_shown(const struct names *n, struct out_sink *s, enum ir_show show, uint64_t number)
{
	const struct stack *st = names_stack(n, number);

	if (show >= IR_SHOW_FUNC) {
		if (st && st->nframes)
			put_frame(s, &st->frames[0], show, false);
		return;
	}
	for (uint32_t i = 0; st && i < st->nframes; i++) {
		put_frame(s, &st->frames[i], show, i > 0);
		if (show != IR_SHOW_ADDRS_EACH && show != IR_SHOW_ADDRS)
			out_putc(s, '\n');
	}
}
