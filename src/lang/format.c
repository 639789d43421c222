/*
 * Parses format strings.
 *
 * The two grammars differ little.  SystemTap's is C's: flags, width, precision, size, letter, in that order
 * (its own parser stops after one flag; more are accepted here).  D accepts them in any order, and has two
 * additional flags: @ (the aggregation's value) and ? (a width of 16, the digits of a
 * pointer).  Each language has a table of its letters and their size prefixes.
 */
#include "lang/format.h"

#include <string.h>

#include "base/arena.h"

enum size_prefix {
	SIZE_NONE = 0,
	SIZE_HH = 1,
	SIZE_H = 2,
	SIZE_L = 4,
	SIZE_LL = 8,
	SIZE_LDBL = 16,		/* L */
	SIZE_W = 32,		/* w: D's name for l before c and s */
	SIZE_INT = SIZE_HH | SIZE_H | SIZE_L | SIZE_LL,
};

struct letter {
	char letter;
	enum fmt_kind kind;
	bool bare;		/* is allowed without a size prefix */
	unsigned int sizes;	/* the allowed prefixes */
};

static const struct letter d_letters[] = {
	{ 'a', FMT_ADDR, true, SIZE_NONE },
	{ 'A', FMT_ADDR, true, SIZE_NONE },
	{ 'c', FMT_INT, true, SIZE_L | SIZE_W },
	{ 'C', FMT_INT, true, SIZE_NONE },
	{ 'd', FMT_INT, true, SIZE_INT },
	{ 'e', FMT_FLOAT, true, SIZE_LDBL },
	{ 'E', FMT_FLOAT, true, SIZE_LDBL },
	{ 'f', FMT_FLOAT, true, SIZE_LDBL },
	{ 'g', FMT_FLOAT, true, SIZE_LDBL },
	{ 'G', FMT_FLOAT, true, SIZE_LDBL },
	{ 'i', FMT_INT, true, SIZE_INT },
	{ 'I', FMT_STRING, true, SIZE_NONE },
	{ 'k', FMT_STACK, true, SIZE_NONE },
	{ 'o', FMT_INT, true, SIZE_INT },
	{ 'p', FMT_ADDR, true, SIZE_NONE },
	{ 'P', FMT_INT, true, SIZE_NONE },
	{ 's', FMT_STRING, true, SIZE_NONE },
	{ 's', FMT_UNSUP, false, SIZE_L | SIZE_W },
	{ 'S', FMT_STRING, true, SIZE_NONE },
	{ 'T', FMT_TIME, true, SIZE_NONE },
	{ 'u', FMT_INT, true, SIZE_INT },
	{ 'x', FMT_INT, true, SIZE_INT },
	{ 'X', FMT_INT, true, SIZE_INT },
	{ 'Y', FMT_TIME, true, SIZE_NONE },
	{ 0 }
};

static const struct letter stp_letters[] = {
	{ 'b', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 'c', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 'd', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 'i', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 'm', FMT_BYTES, true, SIZE_NONE },
	{ 'M', FMT_BYTES, true, SIZE_NONE },
	{ 'o', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 'p', FMT_ADDR, true, SIZE_L | SIZE_LL },
	{ 's', FMT_STRING, true, SIZE_NONE },
	{ 'u', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 'x', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 'X', FMT_INT, true, SIZE_L | SIZE_LL },
	{ 0 }
};

struct reader {
	struct arena *arena;
	enum fmt_lang lang;
	const char *p, *end;
	size_t n;		/* the current conversion's number, from 1 */
	const char *err;
};

static const struct letter *letter_find(enum fmt_lang lang, char c, unsigned int size)
{
	const struct letter *l = lang == FMT_D ? d_letters : stp_letters;

	for (; l->letter; l++)
		if (l->letter == c && (size ? (l->sizes & size) != 0 : l->bare))
			return l;
	return NULL;
}

static uint8_t size_bytes(unsigned int size)
{
	switch (size) {
	case SIZE_HH:
		return 1;
	case SIZE_H:
		return 2;
	case SIZE_W:
		return 4;
	case SIZE_L:
	case SIZE_LL:
		return 8;
	default:
		return 0;
	}
}

static uint8_t flag_of(enum fmt_lang lang, char c)
{
	switch (c) {
	case '-':
		return FMT_LEFT;
	case '+':
		return FMT_PLUS;
	case ' ':
		return FMT_SPACE;
	case '#':
		return FMT_ALT;
	case '0':
		return FMT_ZERO;
	case '\'':
		return lang == FMT_D ? FMT_GROUP : 0;
	case '@':
		return lang == FMT_D ? FMT_AGG : 0;
	default:
		return 0;
	}
}

/* Of - and 0, the later one wins in D; in C, hence in SystemTap, - wins. */
static void add_flag(struct reader *r, struct fmt_conv *c, uint8_t flag)
{
	c->flags |= flag;
	if (r->lang == FMT_D && flag == FMT_LEFT)
		c->flags &= (uint8_t)~FMT_ZERO;
	if (r->lang == FMT_D && flag == FMT_ZERO)
		c->flags &= (uint8_t)~FMT_LEFT;
}

static bool is_digit(const struct reader *r)
{
	return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

/* Digits; none are 0. */
static bool number(struct reader *r, const char *what, int *ret)
{
	*ret = 0;
	for (; is_digit(r); r->p++) {
		*ret = *ret * 10 + (*r->p - '0');
		if (*ret > FMT_MAX_WIDTH) {
			r->err = arena_printf(r->arena, "format conversion #%zu has a %s of more than %d", r->n,
					      what, FMT_MAX_WIDTH);
			return false;
		}
	}
	return true;
}

/* width = "*" | digits | "?" (D) */
static bool width(struct reader *r, struct fmt_conv *c)
{
	if (c->dyn_width && *r->p == '*') {
		r->err = arena_printf(r->arena, "format conversion #%zu has more than one '*' specified for the "
				      "output width", r->n);
		return false;
	}
	if (*r->p == '*') {
		c->dyn_width = true;
		r->p++;
		return true;
	}
	c->has_width = true;
	if (*r->p == '?') {
		c->width = 16;
		r->p++;
		return true;
	}
	return number(r, "width", &c->width);
}

/* precision = "." ("*" | digits | nothing) */
static bool precision(struct reader *r, struct fmt_conv *c)
{
	if (c->has_prec || c->dyn_prec) {
		r->err = arena_printf(r->arena, "format conversion #%zu has more than one '.' specified", r->n);
		return false;
	}
	r->p++;
	if (r->p < r->end && *r->p == '*') {
		c->dyn_prec = true;
		r->p++;
		return true;
	}
	c->has_prec = true;
	return number(r, "precision", &c->prec);
}

/* size = "hh" | "h" | "l" | "ll" | "L" | "w"; only "l" in SystemTap, whose numbers have one size */
static unsigned int size_prefix(struct reader *r)
{
	bool twice = r->p + 1 < r->end && r->p[1] == r->p[0];

	if (r->lang != FMT_D) {
		if (*r->p != 'l' || twice)
			return SIZE_NONE;
		r->p++;
		return SIZE_L;
	}
	switch (*r->p) {
	case 'h':
		r->p += twice ? 2 : 1;
		return twice ? SIZE_HH : SIZE_H;
	case 'l':
		r->p += twice ? 2 : 1;
		return twice ? SIZE_LL : SIZE_L;
	case 'L':
		r->p++;
		return SIZE_LDBL;
	case 'w':
		r->p++;
		return SIZE_W;
	default:
		return SIZE_NONE;
	}
}

/*
 * Everything between the % and the size or the letter; false with r->err set.  D accepts any order,
 * SystemTap only flags, width, precision.
 */
static bool modifiers(struct reader *r, struct fmt_conv *c)
{
	bool d = r->lang == FMT_D;

	while (r->p < r->end) {
		bool prec = c->has_prec || c->dyn_prec;
		bool wide = prec || c->has_width || c->dyn_width;
		uint8_t flag = flag_of(r->lang, *r->p);

		if (flag && (d ? flag != FMT_ZERO || !c->has_width : !wide)) {
			add_flag(r, c, flag);
			r->p++;
		} else if (is_digit(r) || *r->p == '*' || (d && *r->p == '?')) {
			if (!d && wide)
				break;
			if (!width(r, c))
				return false;
		} else if (*r->p == '.') {
			if (!precision(r, c))
				return false;
		} else {
			break;
		}
	}
	return true;
}

/* conversion = "%" modifiers size letter; r->p is after the %. */
static bool conversion(struct reader *r, struct fmt_conv *c)
{
	const struct letter *l;
	unsigned int size = SIZE_NONE;
	const char *name;

	if (!modifiers(r, c))
		return false;
	name = r->p;
	if (r->p < r->end)
		size = size_prefix(r);
	/* D accepts modifiers after the size, too: %l@d. */
	if (r->lang == FMT_D && size && !modifiers(r, c))
		return false;
	if (r->p == r->end) {
		r->err = arena_printf(r->arena, "format conversion #%zu name expected before end of format string",
				      r->n);
		return false;
	}
	if (*r->p == '$') {
		r->err = arena_printf(r->arena, "format conversion #%zu uses unsupported positional format (%%n$)",
				      r->n);
		return false;
	}
	if (*r->p == '%') {
		r->err = arena_printf(r->arena, "format conversion #%zu cannot be combined with other format "
				      "flags: %%%%", r->n);
		return false;
	}
	l = letter_find(r->lang, *r->p, size);
	if (!l) {
		r->err = arena_printf(r->arena, "format conversion #%zu is undefined: %%%.*s", r->n,
				      (int)(r->p + 1 - name), name);
		return false;
	}
	c->kind = l->kind;
	c->letter = l->letter;
	c->size = l->letter == 'c' && size ? 4 : size_bytes(size);
	r->p++;
	return true;
}

/* Is the % at r->p a literal?  In SystemTap, also one that is the format's last character. */
static bool is_percent(const struct reader *r)
{
	if (r->p + 1 == r->end)
		return r->lang == FMT_STP;
	return r->p[1] == '%';
}

struct fmt *fmt_parse(struct arena *a, enum fmt_lang lang, const char *s, size_t len, const char **err,
		      size_t *off)
{
	struct reader r = { .arena = a, .lang = lang, .p = s, .end = s + len };
	struct fmt *f = arena_new_of(a, struct fmt);
	char *lit = arena_alloc(a, len + 1);	/* all literal texts */
	size_t cap = 0;
	struct fmt_conv *c;

	f->text = arena_strndup(a, s, len);
	for (;;) {
		f->convs = arena_grow(a, f->convs, &cap, f->n, sizeof(*f->convs));
		c = &f->convs[f->n++];
		memset(c, 0, sizeof(*c));
		c->lit = lit;
		while (r.p < r.end) {
			if (*r.p == '%' && !is_percent(&r))
				break;
			r.p += *r.p == '%' && r.p + 1 < r.end;
			*lit++ = *r.p++;
		}
		c->lit_len = (size_t)(lit - c->lit);
		c->off = (size_t)(r.p - s);
		if (r.p == r.end)
			return f;
		r.n = f->n;
		r.p++;
		if (!conversion(&r, c)) {
			*err = r.err;
			*off = c->off;
			return NULL;
		}
	}
}

size_t fmt_nargs(const struct fmt *f)
{
	size_t i, n = 0;

	for (i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		if (c->kind == FMT_NONE)
			continue;
		n += c->dyn_width + c->dyn_prec + !(c->flags & FMT_AGG);
	}
	return n;
}
