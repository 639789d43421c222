/*
 * Output: print and its like become records, sprint and its like strings.
 */
#include "stp/lower.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "lang/format.h"

enum { MAX_ARGS = 32 };		/* of one print, as in SystemTap */

static const struct fmt *parse_format(struct low *l, const char *text, size_t len)
{
	const char *err;
	size_t off;

	return fmt_parse(l->arena, FMT_STP, text, len, &err, &off);
}

/* @shows: of each value, or NULL: none has one. */
static void emit(struct low *l, enum ir_act_kind kind, const struct fmt *fmt, const ir_reg *vals,
		 const enum ir_show *shows, unsigned int n, struct src_pos pos)
{
	struct ir_rec *rec = ir_rec_new(l->prog, l->b.clause);

	ir_rec_act(l->prog, rec, kind, pos)->fmt = fmt;
	for (unsigned int i = 0; i < n; i++) {
		enum ir_type t = l->b.clause->regs[vals[i]];

		struct ir_slot slot = low_slot(t == IR_STR ? STP_STRINGS : STP_LONG);

		slot.show = shows ? shows[i] : IR_SHOW_NUMBER;
		ir_rec_field(l->prog, rec, slot);
	}
	ir_emit(&l->b, rec, vals);
}

void low_record(struct low *l, enum ir_act_kind kind, const char *format, const ir_reg *vals, unsigned int n,
		struct src_pos pos)
{
	emit(l, kind, format ? parse_format(l, format, strlen(format)) : NULL, vals, NULL, n, pos);
}

void low_record_shown(struct low *l, ir_reg val, enum ir_show show, struct src_pos pos)
{
	emit(l, IR_ACT_PRINTF, parse_format(l, "%s", 2), &val, &show, 1, pos);
}

ir_reg low_sprintf(struct low *l, const char *format, const ir_reg *vals, unsigned int n)
{
	return n ? ir_sprintf(&l->b, parse_format(l, format, strlen(format)), vals) : low_str(l, format);
}

/* --- formats ----------------------------------------------------------------------------------------- */

static void add_text(struct strbuf *b, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '%')
			strbuf_putc(b, '%');
		strbuf_putc(b, s[i]);
	}
}

/* The format that a print without one stands for. */
static const struct fmt *own_format(struct low *l, const struct stp_node *n)
{
	const struct fmt *ret;
	struct strbuf b = {0};

	for (size_t i = 0; i < n->nargs; i++) {
		if (i && n->print->delimited)
			add_text(&b, n->str, n->str_len);
		strbuf_puts(&b, n->args[i]->type == STP_STRINGS ? "%s" : n->print->one_char ? "%c" : "%d");
	}
	if (n->print->newline)
		strbuf_putc(&b, '\n');
	ret = parse_format(l, arena_strndup(l->arena, strbuf_str(&b), b.len), b.len);
	strbuf_fini(&b);
	return ret;
}

/* --- histograms -------------------------------------------------------------------------------------- */

/* print(@hist_log(x)): the record has the whole statistic. */
static ir_reg print_hist(struct low *l, struct stp_node *n)
{
	struct stp_node *hist = n->args[0], *stat = hist->l;
	struct ir_rec *rec;
	ir_reg vals[STP_MAX_INDEXES + 1], fields[STP_MAX_INDEXES + 1];
	struct stp_var *v = stat->kind == STP_INDEX ? stat->l->var : stat->var;
	struct ir_block *some = ir_block_new(&l->b), *none = ir_block_new(&l->b);
	size_t nkeys = stat->kind == STP_INDEX ? stat->nargs : 0;
	struct ir_map *m = low_map(l, v);

	if (n->print->to_string) {
		low_refuse(l, n, "print it with print(@hist_log(x))", "a histogram is no string");
		return low_dummy(l, STP_STRINGS);
	}
	low_values(l, stat->args, nkeys, vals);
	low_near(l, hist->what, hist->pos);
	ir_br(&l->b, ir_extract(&l->b, IR_SCOUNT, m, vals), some, none);
	ir_at(&l->b, none);
	ir_fault(&l->b, ABI_FAULT_EMPTY, low_const(l, 0));
	ir_at(&l->b, some);
	rec = ir_rec_new(l->prog, l->b.clause);
	ir_rec_act(l->prog, rec, IR_ACT_HIST, n->pos);
	fields[ir_rec_field(l->prog, rec, low_slot(STP_LONG))] = low_const(l, n->print->newline);
	rec->stat = m;
	memcpy(fields + 1, vals, nkeys * sizeof(*vals));
	ir_emit(&l->b, rec, fields);
	return low_const(l, 0);
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* --- memory ------------------------------------------------------------------------------------------ */

enum { MAX_DUMP = 64 };		/* bytes of %m and %M, unless the number of %M is computed */

/* %m and %M give the bytes at their address: the kernel's in its tracepoints, else the process's. */
static enum ir_op dump_op(const struct low *l)
{
	return l->handler && l->handler->kind == STP_P_TRACEPOINT ? IR_LOAD : IR_ULOAD;
}

static bool is_dump(const struct fmt_conv *c)
{
	return c->kind == FMT_BYTES;
}

/* The bytes of a value in a string, which ends before the first that is 0. */
static bool is_binary(const struct stp_node *n, const struct fmt_conv *c)
{
	return n->print->to_string && c->kind == FMT_INT && c->letter == 'b';
}

static int64_t dump_bytes(const struct fmt_conv *c)
{
	return c->has_prec && c->prec > 0 ? c->prec : 1;
}

/* Whether all of the format can be had. */
static bool check_format(struct low *l, struct stp_node *n, const struct fmt *f)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		if (c->kind == FMT_UNSUP || c->kind == FMT_FLOAT) {
			low_refuse(l, n, NULL, "%%%c is not available", c->letter);
			return false;
		}
		if (!is_dump(c) && !is_binary(n, c))
			continue;
		if (c->dyn_width || (c->dyn_prec && c->letter != 'M')) {
			low_refuse(l, n, "write the number of bytes, as %.8m, or print them in hexadecimal by %.*M",
				   "%%%c cannot have this number computed", c->letter);
			return false;
		}
		bytes += c->dyn_prec ? 0 : is_dump(c) ? dump_bytes(c) : 8;
	}
	if (bytes > MAX_DUMP) {
		low_refuse(l, n, "print them in several steps, or by %.*M", "more than %d bytes of memory at once", MAX_DUMP);
		return false;
	}
	return true;
}

/* The variable with @left bytes from the address @addr on in hexadecimal, as many as fit in a string. */
static struct ir_var *dump(struct low *l, struct stp_node *n, struct ir_var *addr, struct ir_var *left)
{
	struct ir_block *head = ir_block_new(&l->b), *body = ir_block_new(&l->b), *out = ir_block_new(&l->b);
	struct ir_var *text = low_temp(l, STP_STRINGS);
	ir_reg vals[2], at;

	ir_vst(&l->b, text, low_str(l, ""));
	low_count(l, 1, n->what, n->pos, true);
	ir_jmp(&l->b, head);
	ir_at(&l->b, head);
	low_near(l, n->what, n->pos);
	ir_turn(&l->b);
	low_count(l, 1, n->what, n->pos, false);
	ir_br(&l->b, ir_op2(&l->b, IR_SLT, low_const(l, 0), ir_vld(&l->b, left)), body, out);
	ir_at(&l->b, body);
	at = ir_vld(&l->b, addr);
	vals[0] = ir_vld(&l->b, text);
	vals[1] = ir_load(&l->b, dump_op(l), at, 1, false);
	ir_vst(&l->b, text, low_sprintf(l, "%s%02x", vals, 2));
	ir_vst(&l->b, addr, ir_op2(&l->b, IR_ADD, at, low_const(l, 1)));
	ir_vst(&l->b, left, ir_op2(&l->b, IR_SUB, ir_vld(&l->b, left), low_const(l, 1)));
	low_count(l, 0, n->what, n->pos, true);
	ir_jmp(&l->b, head);
	ir_at(&l->b, out);
	l->statements = 0;
	return text;
}

/* The values of the print @n. */
struct print_values {
	ir_reg v[MAX_ARGS + MAX_DUMP];
	enum ir_show shows[MAX_ARGS + MAX_DUMP];
	unsigned int n;
};

static void add_value(struct print_values *p, ir_reg v, enum ir_show show)
{
	p->shows[p->n] = show;
	p->v[p->n++] = v;
}

/* One conversion of a byte for each byte; blanks fill the width. */
static void add_dump(struct low *l, struct print_values *p, const struct fmt_conv *c, ir_reg addr, struct strbuf *text)
{
	int64_t bytes = dump_bytes(c), blanks = c->width - (c->letter == 'M' ? 2 * bytes : bytes);

	if (blanks < 0)
		blanks = 0;
	strbuf_printf(text, "%*s", c->flags & FMT_LEFT ? 0 : (int)blanks, "");
	for (int64_t i = 0; i < bytes; i++) {
		strbuf_puts(text, c->letter == 'M' ? "%02x" : "%c");
		add_value(p, ir_load(&l->b, dump_op(l), ir_op2(&l->b, IR_ADD, addr, low_const(l, i)), 1, false),
			  IR_SHOW_NUMBER);
	}
	strbuf_printf(text, "%*s", c->flags & FMT_LEFT ? (int)blanks : 0, "");
}

static int binary_size(int n)
{
	return n == 1 || n == 2 || n == 4 || n == 8 ? n : 0;
}

/* As out/printf_stp.c prints it: the precision or the width is the number of bytes, else 8; a wider one is filled with 0. */
static void add_binary(struct low *l, struct print_values *p, const struct fmt_conv *c, ir_reg v, struct strbuf *text)
{
	int size = c->has_prec ? binary_size(c->prec) : 0;

	if (!size)
		size = binary_size(c->width) ? c->width : 8;
	if (c->width > size && !(c->flags & FMT_LEFT)) {
		strbuf_puts(text, "%c");
		add_value(p, low_const(l, 0), IR_SHOW_NUMBER);
	}
	for (int i = 0; i < size; i++) {
		strbuf_puts(text, "%c");
		add_value(p, ir_op2(&l->b, IR_AND, ir_op2(&l->b, IR_SHR, v, low_const(l, 8 * i)), low_const(l, 255)),
			  IR_SHOW_NUMBER);
	}
}

/* Bytes of the conversion at @s, behind whose letter the next text begins. */
static size_t conv_len(const char *s)
{
	size_t n = 1;

	n += strspn(s + n, "-+ #0'");
	n += strspn(s + n, "0123456789*.");
	n += strspn(s + n, "hlLqjzt");
	return n + 1;
}

/*
 * Memory whose bytes a value counts is read first, as that parts the control flow: its text is in dumps[i], and
 * args[i] and the number before it are no values any more.  Is there any memory to be read, now or later?
 */
static bool take_dumps(struct low *l, struct stp_node *n, const struct fmt *f, struct stp_node **args,
		       struct ir_var **dumps)
{
	bool any = false;
	size_t arg = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];
		struct ir_var *addr, *left;

		if (c->kind == FMT_NONE)
			continue;
		arg += c->dyn_width + c->dyn_prec;
		any |= is_dump(c) || is_binary(n, c);
		if (is_dump(c) && c->dyn_prec) {
			left = low_temp(l, STP_LONG);
			ir_vst(&l->b, left, low_expr(l, args[arg - 1]));
			addr = low_temp(l, STP_LONG);
			ir_vst(&l->b, addr, low_expr(l, args[arg]));
			dumps[arg] = dump(l, n, addr, left);
			args[arg - 1] = args[arg] = NULL;
		}
		arg++;
	}
	return any;
}

/* @f with conversions of bytes for those of memory, and the values that it then takes. */
static const struct fmt *expand_dumps(struct low *l, const struct stp_node *n, const struct fmt *f,
				      const struct print_values *in, struct print_values *out)
{
	struct strbuf text = {0};
	const struct fmt *ret;
	unsigned int arg = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		add_text(&text, c->lit, c->lit_len);
		if (c->kind == FMT_NONE)
			continue;
		if (is_binary(n, c)) {
			add_binary(l, out, c, in->v[arg++], &text);
			continue;
		}
		if (is_dump(c) && !c->dyn_prec) {
			add_dump(l, out, c, in->v[arg++], &text);
			continue;
		}
		if (is_dump(c)) {
			strbuf_printf(&text, "%%%s%ds", c->flags & FMT_LEFT ? "-" : "", c->width);
			arg++;
			add_value(out, in->v[arg], IR_SHOW_NUMBER);
			arg++;
			continue;
		}
		for (int more = c->dyn_width + c->dyn_prec; more >= 0; more--, arg++)
			add_value(out, in->v[arg], in->shows[arg]);
		strbuf_add(&text, f->text + c->off, conv_len(f->text + c->off));
	}
	ret = parse_format(l, arena_strndup(l->arena, strbuf_str(&text), text.len), text.len);
	strbuf_fini(&text);
	return ret;
}

/* --- the whole --------------------------------------------------------------------------------------- */

ir_reg low_print(struct low *l, struct stp_node *n)
{
	struct print_values *p = arena_new_of(l->arena, struct print_values), *expanded;
	struct ir_var **dumps = arena_alloc(l->arena, (n->nargs + 1) * sizeof(*dumps));
	struct stp_node *args[MAX_ARGS];
	bool any = false;
	const struct fmt *f;

	if (n->nargs == 1 && n->args[0]->kind == STP_HIST)
		return print_hist(l, n);
	if (n->nargs > MAX_ARGS) {
		low_refuse(l, n, "print in several steps", "too many arguments (%zu)", n->nargs);
		return low_dummy(l, n->type);
	}
	for (size_t i = 0; i < n->nargs; i++) {
		if (n->args[i]->type == STP_LONG || n->args[i]->type == STP_STRINGS)
			continue;
		low_refuse(l, n->args[i], NULL, n->args[i]->kind == STP_HIST ?
			   "a histogram is printed alone, by print or println" : "cannot print a raw stats object");
		return low_dummy(l, n->type);
	}
	f = n->print->formatted ? n->fmt : own_format(l, n);
	if (!check_format(l, n, f))
		return low_dummy(l, n->type);
	p->n = (unsigned int)n->nargs;
	for (size_t i = 0; i < n->nargs; i++) {
		p->shows[i] = IR_SHOW_NUMBER;
		args[i] = n->args[i];
		dumps[i] = NULL;
	}
	any = take_dumps(l, n, f, args, dumps);
	/* Numbers of stacks are not kept over what parts: prints have either in practice. */
	for (size_t i = 0; i < n->nargs && !n->print->to_string; i++)
		if (args[i] && low_shown(l, n->args[i], &p->v[i], &p->shows[i]))
			args[i] = NULL;
	low_values(l, args, n->nargs, p->v);
	for (size_t i = 0; i < n->nargs; i++)
		if (dumps[i])
			p->v[i] = ir_vld(&l->b, dumps[i]);
	if (any) {
		low_near(l, n->what, n->pos);
		expanded = arena_new_of(l->arena, struct print_values);
		f = expand_dumps(l, n, f, p, expanded);
		p = expanded;
	}
	if (n->print->to_string)
		return ir_sprintf(&l->b, f, p->v);
	emit(l, IR_ACT_PRINTF, f, p->v, p->shows, p->n, n->pos);
	return low_const(l, 0);
}
