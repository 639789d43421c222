/*
 * Strings of networks and file systems: paths, addresses, JSON.
 *
 * As in put.c, state that changes in a loop is in the work area.
 */
#include "rt.h"

#include "put.h"

struct text {
	u64 pos;		/* bytes written */
	u64 n;
	u64 best, best_n;	/* inet6: the longest run of zero groups */
	u64 run;		/* and the current one */
	u64 from;		/* cleanpath: where the current component begins */
	/* json */
	u64 state, at, nest, same, index, quote;
};

struct work {
	struct text *p;
	char *dst;
	u64 size;
	const u8 *s, *path;
	u64 high, low;
};

#define INLINE static inline __attribute__((always_inline))

INLINE u64 add(struct work *c, u8 byte)
{
	u64 pos = c->p->pos;

	if (pos >= c->size - 1)
		return 1;
	c->dst[pos] = (char)byte;
	c->p->pos = pos + 1;
	return 0;
}

INLINE void finish(struct work *c)
{
	u64 pos = c->p->pos;

	if (pos < c->size)
		c->dst[pos] = '\0';
}

INLINE u8 made(const struct work *c, u64 at)
{
	return at < c->size ? (u8)c->dst[at] : 0;
}

/* --- paths -------------------------------------------------------------------------------------------- */

static long back_up(u32 k, struct work *c)
{
	u64 pos = c->p->pos;

	if (!pos || made(c, pos - 1) == '/')
		return 1;
	c->p->pos = pos - 1;
	return 0;
}

/* The component that ends here is "..": remove the one before it. */
INLINE void parent(struct work *c)
{
	struct text *p = c->p;
	u64 from = p->from;

	if (from == 1) {
		p->pos = 1;		/* the root's parent is the root */
		return;
	}
	if (from >= 3 && made(c, from - 2) == '.' && made(c, from - 3) == '.' &&
	    (from == 3 || made(c, from - 4) == '/')) {
		add(c, '/');
		p->from = p->pos;
		return;
	}
	p->pos = from - 1;
	rt_loop((u32)c->size, back_up, c, 0);
	p->from = p->pos;
}

static long clean_byte(u32 k, struct work *c)
{
	struct text *p = c->p;
	u64 from = p->from, n = p->pos - from;
	u8 byte;

	if (k >= c->size)
		return 1;
	byte = c->s[k];
	if (byte && byte != '/')
		return (long)add(c, byte);
	if (n == 1 && made(c, from) == '.' && (byte || from)) {
		p->pos = from;
	} else if (n == 2 && made(c, from) == '.' && made(c, from + 1) == '.' && from) {
		parent(c);
	} else if (byte && (n || !p->pos)) {
		add(c, '/');
		p->from = p->pos;
	}
	return byte == 0;
}

RT long rt_cleanpath(u8 *work, const char *s, u64 size)
{
	struct work c = { (struct text *)work, (char *)work + PUT_STATE, size, (const u8 *)s };

	c.p->pos = 0;
	c.p->from = 0;
	rt_loop((u32)size, clean_byte, &c, 0);
	finish(&c);
	return 0;
}

/* --- addresses ---------------------------------------------------------------------------------------- */

INLINE u64 group(const struct work *c, u32 k)
{
	return (k < 4 ? c->high : c->low) >> ((3 - (k & 3)) * 16 & 63) & 0xffff;
}

static long zero_run(u32 k, struct work *c)
{
	struct text *p = c->p;

	if (group(c, k)) {
		p->run = 0;
		return 0;
	}
	p->run++;
	if (p->run > p->best_n) {
		p->best_n = p->run;
		p->best = k + 1 - p->run;
	}
	return 0;
}

INLINE void hex_digit(struct work *c, u64 v)
{
	add(c, (u8)(v < 10 ? '0' + v : 'a' + v - 10));
}

static long put_group(u32 k, struct work *c)
{
	struct text *p = c->p;
	u64 v = group(c, k), best = p->best, end = best + p->best_n;

	if (p->best_n > 1 && k >= best && k < end) {
		if (k == best)
			add(c, ':');
		if (k == 7)
			add(c, ':');
		return 0;
	}
	if (k)
		add(c, ':');
	if (v >> 12)
		hex_digit(c, v >> 12);
	if (v >> 8)
		hex_digit(c, v >> 8 & 15);
	if (v >> 4)
		hex_digit(c, v >> 4 & 15);
	hex_digit(c, v & 15);
	return 0;
}

/* One of the four bytes of an IPv4 address in the low half. */
static long put_part(u32 k, struct work *c)
{
	u64 v = c->low >> ((3 - k) * 8 & 31) & 0xff;

	add(c, k ? '.' : ':');
	if (v >= 100)
		add(c, (u8)('0' + v / 100));
	if (v >= 10)
		add(c, (u8)('0' + v / 10 % 10));
	add(c, (u8)('0' + v % 10));
	return 0;
}

/* @high, @low: the address's halves as big-endian numbers.  The text is RFC 5952's, the end as an IPv4 address where
 * inet_ntop(3) has one. */
RT long rt_inet6(u8 *work, u64 high, u64 low, u64 size)
{
	struct text *p = (struct text *)work;
	struct work c = { p, (char *)work + PUT_STATE, size, 0, 0, high, low };
	u64 four = !high && (low >> 32 == 0xffff || (low >> 32 == 0 && low >> 16));

	p->pos = 0;
	p->best = 0;
	p->best_n = 0;
	p->run = 0;
	rt_loop(8, zero_run, &c, 0);
	if (four) {
		add(&c, ':');
		if (low >> 32) {
			add(&c, ':');
			for (u32 k = 0; k < 4; k++)
				add(&c, 'f');
		}
	}
	/* Each loop has its own call: the verifier would not know which of two functions a pointer holds. */
	rt_loop(four ? 4 : 0, put_part, &c, 0);
	rt_loop(four ? 0 : 8, put_group, &c, 0);
	finish(&c);
	return 0;
}

/* --- JSON --------------------------------------------------------------------------------------------- */

/*
 * One pass over the text, which enters only the containers on the path: other values are skipped by counting brackets
 * outside of strings.
 */
enum {
	VALUE,			/* a value on the path begins */
	KEY, IN_KEY, COLON,	/* of an object on the path */
	SKIP,			/* a value that is not on it */
	TAKE_STRING, TAKE_NEST, TAKE_WORD,
	FAILED, FOUND,
};

INLINE u8 path_byte(const struct work *c, u64 at)
{
	return at < c->size ? c->path[at] : 0;
}

static long path_digit(u32 k, struct work *c)
{
	struct text *p = c->p;
	u8 byte = path_byte(c, p->at);

	p->at++;
	if (byte < '0' || byte > '9')
		return 1;
	p->n = p->n * 10 + byte - '0';
	return 0;
}

/* The elements of an array: @index of them are to be skipped. */
INLINE void element(struct text *p)
{
	p->nest = 0;
	p->quote = 0;
	p->state = p->index ? SKIP : VALUE;
}

INLINE u64 begin_value(struct work *c, u8 byte)
{
	struct text *p = c->p;
	u8 next = path_byte(c, p->at);

	if (byte == ']' || byte == '}' || byte == ',' || byte == ':') {
		p->state = FAILED;
		return 1;
	}
	if (next == '[') {
		p->at++;
		p->n = 0;
		rt_loop(12, path_digit, c, 0);
		p->index = p->n;
		p->same = 0;		/* this container is no object */
		element(p);
		return byte != '[';
	}
	if (next) {
		/* A key: of the document itself without a dot. */
		if (next == '.')
			p->at++;
		p->state = KEY;
		p->index = 0;
		p->same = 1;
		return byte != '{';
	}
	p->quote = 0;
	p->nest = 1;
	p->state = TAKE_STRING;
	if (byte == '"')
		return 0;
	add(c, byte);
	p->state = byte == '{' || byte == '[' ? TAKE_NEST : TAKE_WORD;
	return 0;
}

/* Bit 0 of quote: in a string; bit 1: after a backslash.  Returns 1 outside of strings. */
INLINE u64 outside(struct text *p, u8 byte)
{
	u64 quote = p->quote;

	if (quote & 2)
		p->quote = 1;
	else if (byte == '"')
		p->quote = quote ^ 1;
	else if (quote && byte == '\\')
		p->quote = 3;
	return !quote && byte != '"';
}

INLINE u64 skip(struct text *p, u8 byte)
{
	if (!outside(p, byte))
		return 0;
	if (byte == '{' || byte == '[') {
		p->nest++;
	} else if (byte == '}' || byte == ']') {
		if (!p->nest)
			return 1;
		p->nest--;
	} else if (byte == ',' && !p->nest) {
		if (p->same) {
			p->state = KEY;
		} else {
			p->index--;
			element(p);
		}
	}
	return 0;
}

INLINE u64 in_key(struct work *c, u8 byte)
{
	struct text *p = c->p;
	u8 want = path_byte(c, p->at + p->n);

	if (byte == '"' && !(p->quote & 2)) {
		p->index = p->index && (!want || want == '.' || want == '[');
		p->state = COLON;
		return 0;
	}
	p->quote = byte == '\\' && !(p->quote & 2) ? 2 : 0;
	if (byte != want)
		p->index = 0;
	p->n++;
	return 0;
}

static long json_byte(u32 k, struct work *c)
{
	struct text *p = c->p;
	u64 state = p->state;
	u8 byte;

	if (k >= c->size)
		return 1;
	byte = c->s[k];
	if (!byte) {
		if (state == TAKE_WORD)
			p->state = FOUND;
		return 1;
	}
	if (state == TAKE_STRING) {
		if (byte == '"' && !(p->quote & 2)) {
			p->state = FOUND;
			return 1;
		}
		p->quote = byte == '\\' && !(p->quote & 2) ? 2 : 0;
		return (long)add(c, byte);
	}
	if (state == TAKE_NEST) {
		if (outside(p, byte)) {
			p->nest += byte == '{' || byte == '[';
			p->nest -= byte == '}' || byte == ']';
		}
		if (!p->nest)
			p->state = FOUND;
		return (long)add(c, byte) || !p->nest;
	}
	if (state == IN_KEY)
		return (long)in_key(c, byte);
	if (state == SKIP)
		return (long)skip(p, byte);
	if (state == TAKE_WORD) {
		if (byte > ' ' && byte != ',' && byte != '}' && byte != ']')
			return (long)add(c, byte);
		p->state = FOUND;
		return 1;
	}
	if (byte <= ' ')
		return 0;
	if (state == KEY) {
		p->state = IN_KEY;
		p->n = 0;
		p->index = 1;		/* it matches so far */
		p->quote = 0;
		return byte != '"';
	}
	if (state == COLON) {
		p->quote = 0;
		p->nest = 0;
		p->state = SKIP;
		if (p->index) {
			p->at += p->n;
			p->state = VALUE;
		}
		return byte != ':';
	}
	return (long)begin_value(c, byte);
}

RT long rt_json(u8 *work, const char *s, const char *path, u64 size)
{
	struct text *p = (struct text *)work;
	struct work c = { p, (char *)work + PUT_STATE, size, (const u8 *)s, (const u8 *)path };

	p->pos = 0;
	p->state = VALUE;
	p->at = 0;
	p->nest = 0;
	p->n = 0;
	p->quote = 0;
	p->same = 1;
	p->index = 0;
	if (*path)
		rt_loop((u32)size, json_byte, &c, 0);
	if (p->state != FOUND)
		p->pos = 0;
	finish(&c);
	return 0;
}
