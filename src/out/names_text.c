/*
 * Stacks and addresses as text, DTrace's and SystemTap's.
 */
#include "out/names_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "elf/debug.h"
#include "elf/obj.h"
#include "out/pycode.h"
#include "out/sink.h"

/* --- DTrace's ------------------------------------------------------------------------------------------- */

static const char *frame_text(const struct frame *f, enum ir_show show, char *buf, size_t size)
{
	if (f->code)
		snprintf(buf, size, "[ %s:%" PRIu32 " (%s) ]", f->code->file, f->line, f->code->name);
	else if (!f->mod)
		snprintf(buf, size, "0x%" PRIx64, f->addr);
	else if (show == IR_SHOW_MOD)
		snprintf(buf, size, "%s", f->mod);
	else if (!f->func)
		snprintf(buf, size, "%s`0x%" PRIx64, f->mod, f->addr);
	else if (show == IR_SHOW_SYM || !f->off)
		snprintf(buf, size, "%s`%s", f->mod, f->func);
	else
		snprintf(buf, size, "%s`%s+0x%" PRIx64, f->mod, f->func, f->off);
	return buf;
}

const char *names_kernel(struct names *n, uint64_t addr, char *buf, size_t size)
{
	struct frame f = { .addr = addr };

	names_find_kernel(n, &f);
	return frame_text(&f, IR_SHOW_ADDR, buf, size);
}

void names_put_stack(const struct names *n, struct out_sink *s, uint64_t number, unsigned int indent)
{
	const struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));
	char text[2048];

	out_putc(s, '\n');
	for (uint32_t i = 0; st && i < st->nframes; i++) {
		out_pad(s, ' ', indent);
		out_puts(s, frame_text(&st->frames[i], IR_SHOW_STACK, text, sizeof(text)));
		out_putc(s, '\n');
	}
}

const char *names_text(const struct names *n, enum ir_show show, uint64_t number, char *buf, size_t size)
{
	const struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));

	if (st && st->nframes)
		return frame_text(&st->frames[0], show, buf, size);
	snprintf(buf, size, "?");
	return buf;
}

uint64_t names_same(struct names *n, enum ir_show show, uint64_t number)
{
	const struct stack *st;
	char text[512 + 16];
	uint64_t *first;
	int len;

	if (show != IR_SHOW_SYM && show != IR_SHOW_MOD)
		return number;
	st = bytemap_get(&n->stacks, &number, sizeof(number));
	if (!st || !st->nframes)
		return number;
	len = snprintf(text, 17, "%08x%d", st->pid, st->user);
	frame_text(&st->frames[0], show, text + len, sizeof(text) - (size_t)len);
	first = bytemap_get(&n->texts, text, strlen(text));
	if (first)
		return *first;
	first = arena_alloc(n->arena, sizeof(*first));
	*first = number;
	bytemap_set(&n->texts, text, strlen(text), first);
	return number;
}

/* --- SystemTap's -------------------------------------------------------------------------------------- */

/* "function+0x1/0x10", without what is not known. */
static void put_place(struct out_sink *s, const struct frame *f, bool size)
{
	out_format(s, "%s+0x%" PRIx64, f->func, f->off);
	if (size && f->size)
		out_format(s, "/0x%" PRIx64, f->size);
}

/* The source and line of a frame; of a caller that of its call, which is before the address. */
static bool source_of(const struct frame *f, bool is_caller, const char **file, int *line)
{
	struct debug *d = f->obj ? obj_debug(f->obj) : NULL;

	return d && debug_source_at(d, f->obj_addr - is_caller, file, line);
}

static void put_source(struct out_sink *s, const struct frame *f, enum ir_show show)
{
	const char *file;
	int line;

	if (!source_of(f, false, &file, &line))
		out_format(s, "0x%" PRIx64, f->addr);
	else if (show == IR_SHOW_STAP_LINE)
		out_format(s, "%d", line);
	else if (show == IR_SHOW_STAP_FILE)
		out_puts(s, file);
	else
		out_format(s, "%s:%d", file, line);
}

static void put_frame(struct out_sink *s, const struct frame *f, enum ir_show show, bool is_caller)
{
	const char *file;
	int line;

	switch (show) {
	case IR_SHOW_STAP_FILE:
	case IR_SHOW_STAP_LINE:
	case IR_SHOW_STAP_FILELINE:
		put_source(s, f, show);
		return;
	case IR_SHOW_STAP_CALLERS:
		out_format(s, "%s0x%" PRIx64, is_caller ? " " : "", f->addr);
		return;
	case IR_SHOW_STAP_HEX:
		out_format(s, "0x%" PRIx64 " ", f->addr);
		return;
	case IR_SHOW_STAP_MOD:
		out_puts(s, f->path ? f->path : "<unknown>");
		return;
	case IR_SHOW_STAP_FULL:
	case IR_SHOW_STAP_FULLER:
		out_format(s, " 0x%" PRIx64, f->addr);
		if (f->func) {
			out_puts(s, " : ");
			put_place(s, f, true);
		}
		if (show == IR_SHOW_STAP_FULLER && source_of(f, is_caller, &file, &line))
			out_format(s, " at %s:%d", file, line);
		break;
	case IR_SHOW_STAP_SYM:
		if (f->func)
			out_puts(s, f->func);
		else
			out_format(s, "0x%" PRIx64, f->addr);
		return;
	default:
		if (f->func)
			put_place(s, f, show == IR_SHOW_STAP_DATA);
		else
			out_format(s, "0x%" PRIx64, f->addr);
	}
	if (show != IR_SHOW_STAP_BRIEF && f->path) {
		out_format(s, " [%s", show == IR_SHOW_STAP_SIMPLE ? f->mod : f->path);
		if (!f->func)
			out_format(s, "+0x%" PRIx64, f->mod_off);
		out_putc(s, ']');
	}
}

void names_put_stap(const struct names *n, struct out_sink *s, enum ir_show show, uint64_t number)
{
	const struct stack *st = bytemap_get(&n->stacks, &number, sizeof(number));

	if (show >= IR_SHOW_STAP_SYM) {
		if (st && st->nframes)
			put_frame(s, &st->frames[0], show, false);
		return;
	}
	for (uint32_t i = 0; st && i < st->nframes; i++) {
		put_frame(s, &st->frames[i], show, i > 0);
		if (show != IR_SHOW_STAP_HEX && show != IR_SHOW_STAP_CALLERS)
			out_putc(s, '\n');
	}
}
