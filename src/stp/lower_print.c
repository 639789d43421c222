/*
 * Output: prints become records, sprint() and similar functions strings.
 */
#include "stp/lower.h"

#include <string.h>

#include "abi/record.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "lang/format.h"

enum { MAX_WAYS = 100 };		/* records that one print may write, for texts made later */
enum { MAX_ARGS = 32 };		/* SystemTap's limit for one print */

const struct fmt *stp_lower_parse_format(struct lower *l, const char *text, size_t len)
{
	const char *err;
	size_t off;

	return fmt_parse(l->arena, FMT_STP, text, len, &err, &off);
}

/* @shows: for each value, or NULL. */
static void emit(struct lower *l, enum ir_act_kind kind, const struct fmt *fmt, const ir_reg *vals,
		 const enum ir_show *shows, unsigned int n, struct src_pos pos)
{
	struct ir_rec *rec = ir_rec_new(l->prog, l->b.clause);

	ir_rec_act(l->prog, rec, kind, pos)->fmt = fmt;
	for (unsigned int i = 0; i < n; i++) {
		enum ir_type t = l->b.clause->regs[vals[i]];

		struct ir_slot slot = stp_lower_slot(t == IR_STR ? STP_STRINGS : STP_LONG);

		slot.show = shows ? shows[i] : IR_SHOW_NUMBER;
		ir_rec_field(l->prog, rec, slot);
	}
	ir_emit(&l->b, rec, vals);
}

void stp_lower_record(struct lower *l, enum ir_act_kind kind, const char *format, const ir_reg *vals, unsigned int n,
		      struct src_pos pos)
{
	emit(l, kind, format ? stp_lower_parse_format(l, format, strlen(format)) : NULL, vals, NULL, n, pos);
}

void stp_lower_record_shown(struct lower *l, ir_reg val, enum ir_show show, struct src_pos pos)
{
	emit(l, IR_ACT_PRINTF, stp_lower_parse_format(l, "%s", 2), &val, &show, 1, pos);
}

ir_reg stp_lower_sprintf(struct lower *l, const char *format, const ir_reg *vals, unsigned int n)
{
	return n ? ir_sprintf(&l->b, stp_lower_parse_format(l, format, strlen(format)), vals) : stp_lower_str(l, format);
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

/* The format equivalent to a print without one. */
static const struct fmt *own_format(struct lower *l, const struct stp_node *n)
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
	ret = stp_lower_parse_format(l, arena_strndup(l->arena, strbuf_str(&b), b.len), b.len);
	strbuf_fini(&b);
	return ret;
}

/* --- histograms -------------------------------------------------------------------------------------- */

/* print(@hist_log(x)): the record has the whole statistic. */
static ir_reg print_hist(struct lower *l, struct stp_node *n)
{
	struct stp_node *hist = n->args[0], *stat = hist->l;
	struct ir_rec *rec;
	ir_reg vals[STP_MAX_INDEXES + 1], fields[STP_MAX_INDEXES + 1];
	struct stp_var *v = stat->kind == STP_INDEX ? stat->l->var : stat->var;
	struct ir_block *some = ir_block_new(&l->b), *none = ir_block_new(&l->b);
	size_t nkeys = stat->kind == STP_INDEX ? stat->nargs : 0;
	struct ir_map *m = stp_lower_map(l, v);

	if (n->print->to_string) {
		stp_lower_refuse(l, n, "print it with print(@hist_log(x))", "a histogram is no string");
		return stp_lower_dummy(l, STP_STRINGS);
	}
	stp_lower_values(l, stat->args, nkeys, vals);
	stp_lower_near(l, hist->what, hist->pos);
	ir_br(&l->b, ir_extract(&l->b, IR_SCOUNT, m, vals), some, none);
	ir_at(&l->b, none);
	ir_fault(&l->b, ABI_FAULT_EMPTY, stp_lower_const(l, 0));
	ir_at(&l->b, some);
	rec = ir_rec_new(l->prog, l->b.clause);
	ir_rec_act(l->prog, rec, IR_ACT_HIST, n->pos);
	fields[ir_rec_field(l->prog, rec, stp_lower_slot(STP_LONG))] = stp_lower_const(l, n->print->newline);
	rec->stat = m;
	memcpy(fields + 1, vals, nkeys * sizeof(*vals));
	ir_emit(&l->b, rec, fields);
	return stp_lower_const(l, 0);
}

/* --- the whole --------------------------------------------------------------------------------------- */

/* --- memory ------------------------------------------------------------------------------------------ */

enum { MAX_DUMP = 64 };		/* most bytes of %m and %M, unless %M's number is computed */

/* The operation that reads the memory for %m and %M: the kernel's in its tracepoints, else the process's. */
static enum ir_op dump_op(const struct lower *l)
{
	return l->handler && l->handler->kind == STP_P_TRACEPOINT ? IR_LOAD : IR_ULOAD;
}

static bool is_dump(const struct fmt_conv *c)
{
	return c->kind == FMT_BYTES;
}

/* Is it %b in sprintf: the bytes of a value, up to the first that is 0? */
static bool is_binary(const struct stp_node *n, const struct fmt_conv *c)
{
	return n->print->to_string && c->kind == FMT_INT && c->letter == 'b';
}

static int64_t dump_bytes(const struct fmt_conv *c)
{
	return c->has_prec && c->prec > 0 ? c->prec : 1;
}

/* Is all of the format supported? */
static bool check_format(struct lower *l, struct stp_node *n, const struct fmt *f)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		if (c->kind == FMT_UNSUP || c->kind == FMT_FLOAT) {
			stp_lower_refuse(l, n, NULL, "%%%c is not available", c->letter);
			return false;
		}
		if (!is_dump(c) && !is_binary(n, c))
			continue;
		if (c->dyn_width || (c->dyn_prec && c->letter != 'M')) {
			stp_lower_refuse(l, n, "write the number of bytes, as %.8m, or print them in hexadecimal by %.*M",
					 "%%%c cannot have this number computed", c->letter);
			return false;
		}
		bytes += c->dyn_prec ? 0 : is_dump(c) ? dump_bytes(c) : 8;
	}
	if (bytes > MAX_DUMP) {
		stp_lower_refuse(l, n, "print them in several steps, or by %.*M", "more than %d bytes of memory at once", MAX_DUMP);
		return false;
	}
	return true;
}

/* A variable with @left bytes from @addr on in hexadecimal, as many as fit in a string. */
static struct ir_var *dump(struct lower *l, struct stp_node *n, struct ir_var *addr, struct ir_var *left)
{
	struct ir_block *head = ir_block_new(&l->b), *body = ir_block_new(&l->b), *out = ir_block_new(&l->b);
	struct ir_var *text = stp_lower_temp(l, STP_STRINGS);
	ir_reg vals[2], at;

	ir_vst(&l->b, text, stp_lower_str(l, ""));
	stp_lower_count(l, 1, n->what, n->pos, true);
	ir_jmp(&l->b, head);
	ir_at(&l->b, head);
	stp_lower_near(l, n->what, n->pos);
	ir_turn(&l->b);
	stp_lower_count(l, 1, n->what, n->pos, false);
	ir_br(&l->b, ir_op2(&l->b, IR_SLT, stp_lower_const(l, 0), ir_vld(&l->b, left)), body, out);
	ir_at(&l->b, body);
	at = ir_vld(&l->b, addr);
	vals[0] = ir_vld(&l->b, text);
	vals[1] = ir_load(&l->b, dump_op(l), at, 1, false);
	ir_vst(&l->b, text, stp_lower_sprintf(l, "%s%02x", vals, 2));
	ir_vst(&l->b, addr, ir_op2(&l->b, IR_ADD, at, stp_lower_const(l, 1)));
	ir_vst(&l->b, left, ir_op2(&l->b, IR_SUB, ir_vld(&l->b, left), stp_lower_const(l, 1)));
	stp_lower_count(l, 0, n->what, n->pos, true);
	ir_jmp(&l->b, head);
	ir_at(&l->b, out);
	l->statements = 0;
	return text;
}

/* The values of a print. */
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

/* One conversion for each byte; blanks fill the width. */
static void add_dump(struct lower *l, struct print_values *p, const struct fmt_conv *c, ir_reg addr, struct strbuf *text)
{
	int64_t bytes = dump_bytes(c), blanks = c->width - (c->letter == 'M' ? 2 * bytes : bytes);

	if (blanks < 0)
		blanks = 0;
	strbuf_printf(text, "%*s", c->flags & FMT_LEFT ? 0 : (int)blanks, "");
	for (int64_t i = 0; i < bytes; i++) {
		strbuf_puts(text, c->letter == 'M' ? "%02x" : "%c");
		add_value(p, ir_load(&l->b, dump_op(l), ir_op2(&l->b, IR_ADD, addr, stp_lower_const(l, i)), 1, false),
			  IR_SHOW_NUMBER);
	}
	strbuf_printf(text, "%*s", c->flags & FMT_LEFT ? (int)blanks : 0, "");
}

static int binary_size(int n)
{
	return n == 1 || n == 2 || n == 4 || n == 8 ? n : 0;
}

/*
 * As out/printf_stp.c prints it: the precision or the width is the number of bytes, default 8; zeros fill a larger
 * width.
 */
static void add_binary(struct lower *l, struct print_values *p, const struct fmt_conv *c, ir_reg v, struct strbuf *text)
{
	int size = c->has_prec ? binary_size(c->prec) : 0;

	if (!size)
		size = binary_size(c->width) ? c->width : 8;
	if (c->width > size && !(c->flags & FMT_LEFT)) {
		strbuf_puts(text, "%c");
		add_value(p, stp_lower_const(l, 0), IR_SHOW_NUMBER);
	}
	for (int i = 0; i < size; i++) {
		strbuf_puts(text, "%c");
		add_value(p, ir_op2(&l->b, IR_AND, ir_op2(&l->b, IR_SHR, v, stp_lower_const(l, 8 * i)), stp_lower_const(l, 255)),
			  IR_SHOW_NUMBER);
	}
}

size_t stp_lower_conv_len(const char *s)
{
	size_t n = 1;

	n += strspn(s + n, "-+ #0'");
	n += strspn(s + n, "0123456789*.");
	n += strspn(s + n, "hlLqjzt");
	return n + 1;
}

/*
 * For each memory conversion with a computed number of bytes, read the memory first, because that needs branches: its
 * text goes to dumps[i], and args[i] and the number before it are no longer values.  Returns whether the format has
 * memory conversions at all.
 */
static bool take_dumps(struct lower *l, struct stp_node *n, const struct fmt *f, struct stp_node **args,
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
			left = stp_lower_temp(l, STP_LONG);
			ir_vst(&l->b, left, stp_lower_expr(l, args[arg - 1]));
			addr = stp_lower_temp(l, STP_LONG);
			ir_vst(&l->b, addr, stp_lower_expr(l, args[arg]));
			dumps[arg] = dump(l, n, addr, left);
			args[arg - 1] = args[arg] = NULL;
		}
		arg++;
	}
	return any;
}

/* Replace the conversions of memory in @f by conversions of bytes, and collect the values. */
static const struct fmt *expand_dumps(struct lower *l, const struct stp_node *n, const struct fmt *f,
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
		strbuf_add(&text, f->text + c->off, stp_lower_conv_len(f->text + c->off));
	}
	ret = stp_lower_parse_format(l, arena_strndup(l->arena, strbuf_str(&text), text.len), text.len);
	strbuf_fini(&text);
	return ret;
}

/* --- the whole --------------------------------------------------------------------------------------- */

static bool is_hist_text(const struct stp_node *n)
{
	return n->kind == STP_PRINT && n->print->to_string && !n->print->newline && n->nargs == 1 && n->args[0]->kind == STP_HIST;
}

/* %p before SystemTap 1.3: at least 18 characters, filled with zeros.  Man page stap(1), "--compatible". */
static const struct fmt *old_pointers(struct lower *l, const struct fmt *f)
{
	enum { PLACES = 18 };
	struct strbuf text = {0};
	const struct fmt *ret;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];
		const char *s = f->text + c->off;

		add_text(&text, c->lit, c->lit_len);
		if (c->kind == FMT_NONE)
			continue;
		if (c->letter != 'p' || c->dyn_width || c->dyn_prec)
			strbuf_add(&text, s, stp_lower_conv_len(s));
		else if (c->has_width && !c->has_prec && (c->flags & FMT_LEFT || c->width <= PLACES))
			strbuf_printf(&text, "%%0%dp", c->width);
		else
			strbuf_printf(&text, "%*s%%0%dp", c->has_width && c->width > PLACES ? c->width - PLACES : 0, "", PLACES);
	}
	ret = stp_lower_parse_format(l, arena_strndup(l->arena, strbuf_str(&text), text.len), text.len);
	strbuf_fini(&text);
	return ret;
}

static const struct stp_late *late_of(const struct stp_node *n)
{
	return n->kind == STP_NAME && n->var ? n->var->late : NULL;
}

/* Is there a text among the arguments that the tracer can make, and room for its parts? */
static bool has_late(const struct stp_node *n, const struct fmt *f)
{
	size_t arg = 0, values = n->nargs;
	unsigned int ways = 1, several = 0, own;
	bool found = false;

	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		if (c->dyn_width || c->dyn_prec)
			return false;
		if (c->kind == FMT_NONE || !late_of(n->args[arg++]))
			continue;
		if (c->letter != 's' || c->has_width || c->has_prec)
			return false;
		values += stp_lower_late_room(late_of(n->args[arg - 1]));
		own = stp_lower_late_ways(late_of(n->args[arg - 1]));
		several += own > 1;
		if (several > 1 || __builtin_mul_overflow(ways, own, &ways))
			return false;
		found = true;
	}
	return found && values <= MAX_ARGS + MAX_DUMP && ways <= MAX_WAYS;
}

/* A print with such texts: what each way of it has in common. */
struct late_print {
	struct lower *l;
	struct stp_node *n;
	const struct fmt *f;
	struct ir_var *kept[MAX_ARGS];		/* the other arguments, or NULL */
	enum ir_show shows[MAX_ARGS];
};

static struct stp_lower_choice *open_choice(const struct stp_node *n)
{
	struct stp_lower_choice *open = NULL;

	for (size_t i = 0; i < n->nargs && !open; i++)
		open = late_of(n->args[i]) ? stp_lower_late_open(late_of(n->args[i])) : NULL;
	return open;
}

/* Print with the formats of such texts inserted; first make the choices that are open. */
static void print_way(void *ctx)
{
	struct late_print *way = ctx;
	struct lower *l = way->l;
	struct print_values *p;
	struct stp_lower_choice *open = open_choice(way->n);
	struct stp_node *args[MAX_ARGS];
	ir_reg vals[MAX_ARGS];
	struct strbuf text = {0};
	const struct fmt *f = way->f;
	size_t arg = 0;

	if (open) {
		stp_lower_late_each(l, open, print_way, way);
		return;
	}
	for (size_t i = 0; i < way->n->nargs; i++)
		args[i] = late_of(way->n->args[i]) || way->kept[i] ? NULL : way->n->args[i];
	stp_lower_values(l, args, way->n->nargs, vals);
	for (size_t i = 0; i < way->n->nargs; i++)
		if (way->kept[i])
			vals[i] = ir_vld(&l->b, way->kept[i]);
	p = arena_new_of(l->arena, struct print_values);
	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];
		const struct stp_late *late;

		add_text(&text, c->lit, c->lit_len);
		if (c->kind == FMT_NONE)
			continue;
		late = late_of(way->n->args[arg]);
		if (late) {
			stp_lower_late_format(l, late, &text);
			p->n += stp_lower_late_parts(l, late, p->v + p->n, p->shows + p->n);
		} else {
			strbuf_add(&text, f->text + c->off, stp_lower_conv_len(f->text + c->off));
			add_value(p, vals[arg], way->shows[arg]);
		}
		arg++;
	}
	f = stp_lower_parse_format(l, arena_strndup(l->arena, strbuf_str(&text), text.len), text.len);
	strbuf_fini(&text);
	emit(l, IR_ACT_PRINTF, f, p->v, p->shows, p->n, way->n->pos);
}

/* Can @n's value be read again? */
static bool is_steady(const struct stp_node *n)
{
	return n->kind == STP_NUM || n->kind == STP_STR || (n->kind == STP_NAME && n->var && !n->var->is_global);
}

static ir_reg print_late(struct lower *l, struct stp_node *n, const struct fmt *f)
{
	struct late_print way = { .l = l, .n = n, .f = f };
	ir_reg r;

	for (size_t i = 0; i < n->nargs; i++) {
		bool shown;

		way.shows[i] = IR_SHOW_NUMBER;
		if (late_of(n->args[i]))
			continue;
		shown = stp_lower_shown(l, n->args[i], &r, &way.shows[i]);
		if (!shown && is_steady(n->args[i]))
			continue;
		if (!shown)
			r = stp_lower_expr(l, n->args[i]);
		way.kept[i] = stp_lower_temp(l, shown ? STP_LONG : n->args[i]->type);
		ir_vst(&l->b, way.kept[i], r);
	}
	print_way(&way);
	return stp_lower_const(l, 0);
}

ir_reg stp_lower_print(struct lower *l, struct stp_node *n)
{
	struct print_values *p = arena_new_of(l->arena, struct print_values), *expanded;
	struct ir_var **dumps = arena_alloc(l->arena, (n->nargs + 1) * sizeof(*dumps));
	struct stp_node *args[MAX_ARGS];
	bool any = false;
	const struct fmt *f;

	if (n->nargs == 1 && n->args[0]->kind == STP_HIST)
		return print_hist(l, n);
	/* A histogram that is only printed is never made a string. */
	if (n->nargs == 1 && !n->print->to_string && !n->print->formatted && is_hist_text(n->args[0])) {
		n->args[0]->print = n->print;
		return print_hist(l, n->args[0]);
	}
	if (n->nargs > MAX_ARGS) {
		stp_lower_refuse(l, n, "print in several steps", "too many arguments (%zu)", n->nargs);
		return stp_lower_dummy(l, n->type);
	}
	for (size_t i = 0; i < n->nargs; i++) {
		if (n->args[i]->type == STP_LONG || n->args[i]->type == STP_STRINGS)
			continue;
		stp_lower_refuse(l, n->args[i], NULL, n->args[i]->kind == STP_HIST ?
				 "a histogram is printed alone, by print or println" : "cannot print a raw stats object");
		return stp_lower_dummy(l, n->type);
	}
	f = n->print->formatted ? n->fmt : own_format(l, n);
	if (n->print->formatted && stp_is_older(l->stp, "1.3"))
		f = old_pointers(l, f);
	if (!check_format(l, n, f))
		return stp_lower_dummy(l, n->type);
	p->n = (unsigned int)n->nargs;
	for (size_t i = 0; i < n->nargs; i++) {
		p->shows[i] = IR_SHOW_NUMBER;
		args[i] = n->args[i];
		dumps[i] = NULL;
	}
	any = take_dumps(l, n, f, args, dumps);
	if (!any && !n->print->to_string && has_late(n, f))
		return print_late(l, n, f);
	/* A stack's number is not preserved where other arguments branch: in practice no print has both. */
	for (size_t i = 0; i < n->nargs && !n->print->to_string; i++)
		if (args[i] && stp_lower_shown(l, n->args[i], &p->v[i], &p->shows[i]))
			args[i] = NULL;
	stp_lower_values(l, args, n->nargs, p->v);
	for (size_t i = 0; i < n->nargs; i++)
		if (dumps[i])
			p->v[i] = ir_vld(&l->b, dumps[i]);
	if (any) {
		stp_lower_near(l, n->what, n->pos);
		expanded = arena_new_of(l->arena, struct print_values);
		f = expand_dumps(l, n, f, p, expanded);
		p = expanded;
	}
	if (n->print->to_string)
		return ir_sprintf(&l->b, f, p->v);
	emit(l, IR_ACT_PRINTF, f, p->v, p->shows, p->n, n->pos);
	return stp_lower_const(l, 0);
}
