/*
 * Strings that are built piece by piece: formatted, escaped, replaced, split.
 *
 * State that changes in a loop is in the work area (struct put), whose content the verifier does not track: it would
 * follow each value of a number on the stack, and with two such numbers each pair of values.
 */
#include "rt.h"

#include "put.h"

struct put {
	u64 pos;		/* bytes written */
	u64 n, v;
	u64 from, to;		/* range of the token; from: also the base of a number */
	u64 set[4];		/* a set of bytes */
	u64 sign, mark, zeros;	/* of a number: sign character or 0; characters of the prefix; leading zeros */
};

struct piece {
	struct put *p;
	char *dst;
	u64 size;
	u64 arg, base;
};

#define INLINE static inline __attribute__((always_inline))

enum { LEFT = 1, PLUS = 2, SPACE = 4, ALT = 8, ZERO = 16 };	/* enum fmt_flag */

enum { NOWHERE = ~0u };

INLINE u64 put_byte(struct put *p, char *dst, u64 size, char byte)
{
	u64 pos = p->pos;

	if (pos >= size - 1)
		return 1;
	dst[pos] = byte;
	p->pos = pos + 1;
	return 0;
}

static long put_fill(u32 k, struct piece *c)
{
	return (long)put_byte(c->p, c->dst, c->size, (char)c->arg);
}

INLINE void fill(struct piece *c, char byte, u64 n)
{
	c->arg = (u8)byte;
	if (n > 0 && n <= PUT_NO_PREC)
		rt_loop((u32)n, put_fill, c, 0);
}

INLINE struct piece begin(u8 *work, u64 size)
{
	struct piece c = { (struct put *)work, (char *)work + PUT_STATE, size, 0, 0 };

	return c;
}

INLINE void put_nul(struct piece *c)
{
	u64 pos = c->p->pos;

	if (pos < c->size)
		c->dst[pos] = '\0';
}

/* The first @n bytes of the string @s. */
INLINE void put_bytes(struct piece *c, const char *s, u64 n)
{
	u64 pos = c->p->pos;

	if (pos >= c->size || n >= c->size)
		return;
	rt_copy_str(c->dst + pos, (u32)n + 1, s);
	pos += n;
	c->p->pos = pos < c->size ? pos : c->size - 1;
}

/* --- formats ------------------------------------------------------------------------------------------ */

RT long rt_put_str(u8 *work, const char *s, u64 look, u64 size)
{
	struct piece c = begin(work, size);
	u64 width = look & 0xffff, prec = look >> PUT_PREC_SHIFT & 0xffff, n;

	n = (u64)rt_strlen(s, size);
	c.p->n = n < prec ? n : prec;
	n = c.p->n;
	if (width > n && !(look >> PUT_FLAGS_SHIFT & LEFT))
		fill(&c, ' ', width - n);
	put_bytes(&c, s, n);
	if (width > n && look >> PUT_FLAGS_SHIFT & LEFT)
		fill(&c, ' ', width - n);
	put_nul(&c);
	return 0;
}

static long put_count(u32 k, struct piece *c)
{
	struct put *p = c->p;

	p->n++;
	p->v /= c->base;
	return p->v == 0;
}

static long put_digit(u32 k, struct piece *c)
{
	struct put *p = c->p;
	u64 digit = p->v % c->base, at = p->pos + p->n - 1 - k;

	if (k >= p->n)
		return 1;
	if (at < c->size - 1)
		c->dst[at] = (char)(digit < 10 ? '0' + digit : c->arg + digit - 10);
	p->v /= c->base;
	return 0;
}

RT long rt_put_int(u8 *work, u64 v, u64 look, u64 size)
{
	struct piece c = begin(work, size);
	volatile struct put *p = (struct put *)work;
	u64 width = look & 0xffff, prec = look >> PUT_PREC_SHIFT & 0xffff, flags = look >> PUT_FLAGS_SHIFT & 0xff;
	u8 letter = (u8)(look >> PUT_LETTER_SHIFT);
	u64 all;

	if (letter == 'c') {
		if (width > 1 && !(flags & LEFT))
			fill(&c, ' ', width - 1);
		put_byte(c.p, c.dst, size, (char)v);
		if (width > 1 && flags & LEFT)
			fill(&c, ' ', width - 1);
		put_nul(&c);
		return 0;
	}
	/* In the work area, so that the verifier does not follow all combinations of these. */
	p->sign = 0;
	p->mark = 0;
	p->from = letter == 'o' ? 8 : letter == 'x' || letter == 'X' || letter == 'p' ? 16 : 10;
	if (letter == 'd' || letter == 'i') {
		p->sign = (s64)v < 0 ? '-' : flags & PLUS ? '+' : flags & SPACE ? ' ' : 0;
		v = (s64)v < 0 ? -v : v;
	}
	c.base = p->from;
	if (letter == 'p' || (flags & ALT && c.base == 16))
		p->mark = 2;
	else if (flags & ALT && c.base == 8)
		p->mark = 1;
	p->v = v;
	p->n = 0;
	rt_loop(22, put_count, &c, 0);
	p->zeros = prec != PUT_NO_PREC && prec > p->n ? prec - p->n : 0;
	all = p->n + p->mark + (p->sign != 0);
	if (prec == PUT_NO_PREC && (flags & (ZERO | LEFT)) == ZERO && width > all)
		p->zeros = width - all;
	all += p->zeros;
	if (width > all && !(flags & LEFT))
		fill(&c, ' ', width - all);
	if (p->sign)
		put_byte(c.p, c.dst, size, (char)p->sign);
	if (p->mark)
		put_byte(c.p, c.dst, size, '0');
	if (p->mark == 2)
		put_byte(c.p, c.dst, size, letter == 'X' ? 'X' : 'x');
	fill(&c, '0', p->zeros);
	p->v = v;
	c.arg = letter == 'X' ? 'A' : 'a';
	rt_loop(22, put_digit, &c, 0);
	all = p->pos + p->n;
	p->pos = all < size ? all : size - 1;
	if (width && flags & LEFT) {
		all = (p->sign != 0) + p->mark + p->zeros + p->n;
		if (width > all)
			fill(&c, ' ', width - all);
	}
	put_nul(&c);
	return 0;
}

/* --- parts -------------------------------------------------------------------------------------------- */

RT long rt_slice(char *dst, const char *s, u64 size, s64 from, s64 count)
{
	*dst = '\0';
	if (from < 0 || count <= 0 || from >= rt_strlen(s, size) || from >= (s64)size)
		return 0;
	if (count > (s64)size - 1)
		count = (s64)size - 1;
	rt_copy_str(dst, (u32)count + 1, s + from);
	return 0;
}

RT u64 rt_byteat(const char *s, u64 size, s64 at)
{
	if (at < 0 || at >= rt_strlen(s, size) || at >= (s64)size)
		return 0;
	return (u8)s[at];
}

RT long rt_charstr(char *dst, u64 byte)
{
	dst[0] = (char)byte;
	dst[1] = '\0';
	return 0;
}

/* A walk over the bytes of a string. */
struct walk {
	struct put *p;
	const u8 *s;
	u64 size;
};

static long add_to_set(u32 k, struct walk *c)
{
	u8 byte;

	if (k >= c->size || !c->s[k])
		return 1;
	byte = c->s[k];
	c->p->set[byte >> 6] |= 1ull << (byte & 63);
	return 0;
}

static long find_token(u32 k, struct walk *c)
{
	struct put *p = c->p;
	u64 in;
	u8 byte;

	if (k >= c->size)
		return 1;
	byte = c->s[k];
	in = p->set[byte >> 6] >> (byte & 63) & 1;
	if (p->from == NOWHERE) {
		if (!byte)
			return 1;
		if (!in)
			p->from = k;
		return 0;
	}
	if (byte && !in)
		return 0;
	p->to = k;
	p->n = byte != 0;	/* something may follow */
	return 1;
}

/* The token of @s, or (@rest) what follows it. */
INLINE void take_token(u8 *work, const char *s, const char *delimiters, u64 size, u64 rest)
{
	struct put *p = (struct put *)work;
	struct walk c = { p, (const u8 *)delimiters, size };
	char *dst = (char *)work + PUT_STATE;
	u64 from, n;

	for (u32 k = 0; k < 4; k++)
		p->set[k] = 0;
	p->from = NOWHERE;
	p->to = 0;
	p->n = 0;
	rt_loop((u32)size, add_to_set, &c, 0);
	c.s = (const u8 *)s;
	rt_loop((u32)size, find_token, &c, 0);
	*dst = '\0';
	if (p->from == NOWHERE)
		return;
	if (rest) {
		from = p->to + 1;
		if (p->n && from < size)
			rt_copy_str(dst, (u32)size, s + from);
		return;
	}
	from = p->from;
	n = p->to - from;
	if (from < size && n < size)
		rt_copy_str(dst, (u32)n + 1, s + from);
}

RT long rt_token(u8 *work, const char *s, const char *delimiters, u64 size)
{
	take_token(work, s, delimiters, size, 0);
	return 0;
}

RT long rt_untoken(u8 *work, const char *s, const char *delimiters, u64 size)
{
	take_token(work, s, delimiters, size, 1);
	return 0;
}

/* --- numbers ------------------------------------------------------------------------------------------ */

struct number {
	const u8 *s;
	u64 size, base, v, from;
};

static long add_digit(u32 k, struct number *c)
{
	u64 at = c->from + k, digit;
	u8 byte;

	if (at >= c->size)
		return 1;
	byte = c->s[at];
	if (byte >= '0' && byte <= '9')
		digit = byte - '0';
	else if ((byte | 32) >= 'a' && (byte | 32) <= 'z')
		digit = (byte | 32) - 'a' + 10;
	else
		return 1;
	if (digit >= c->base)
		return 1;
	c->v = c->v * c->base + digit;
	return 0;
}

INLINE u8 byte_of(const struct number *c, u64 at)
{
	return at < c->size ? c->s[at] : 0;
}

static long skip_blank(u32 k, struct number *c)
{
	u8 byte = byte_of(c, c->from);

	if (byte != ' ' && byte != '\t')
		return 1;
	c->from++;
	return 0;
}

enum { LOOSE = 256 };	/* IR_STRTOL_LOOSE */

RT s64 rt_strtol(const char *s, u64 size, s64 base)
{
	u64 loose = base & LOOSE, minus;
	struct number c = { (const u8 *)s, size, (u64)base & ~(u64)LOOSE, 0, 0 };

	if (c.base == 1 || c.base > 36)
		return 0;
	if (loose)
		rt_loop((u32)size, skip_blank, &c, 0);
	minus = byte_of(&c, c.from) == '-';
	c.from += minus || (loose && byte_of(&c, c.from) == '+');
	if (byte_of(&c, c.from) == '0' && (byte_of(&c, c.from + 1) | 32) == 'x' && (c.base == 0 || c.base == 16)) {
		c.from += 2;
		c.base = 16;
	} else if (c.base == 0) {
		c.base = byte_of(&c, c.from) == '0' ? 8 : 10;
	}
	rt_loop((u32)size, add_digit, &c, 0);
	return (s64)(minus ? -c.v : c.v);
}

/* --- other characters --------------------------------------------------------------------------------- */

/* The letters of \a \b \t \n \v \f \r, from the lowest byte up. */
#define SHORT_FORMS 0x7266766e746261ull

struct escape {
	struct put *p;		/* n: something was left out; to: where it is cut, so that dots fit */
	const u8 *s;
	u64 size, end;		/* @end: where the text between the quotes must end */
};

/* How many bytes @byte takes. */
INLINE u64 escaped_size(u8 byte)
{
	if (byte == '"' || byte == '\\' || (byte >= '\a' && byte <= '\r'))
		return 2;
	return byte >= 32 && byte < 127 ? 1 : 4;
}

static long escape_byte(u32 k, struct escape *c)
{
	struct put *p = c->p;
	char *dst = (char *)p + PUT_STATE;
	u64 pos = p->pos, n;
	u8 byte;

	if (k >= c->size)
		return 1;
	byte = c->s[k];
	if (!byte)
		return 1;
	n = escaped_size(byte);
	if (pos >= c->size || pos + n > c->end) {
		p->n = 1;
		return 1;
	}
	p->pos = pos + n;
	if (pos + n + 3 <= c->end)
		p->to = pos + n;
	if (n == 1) {
		dst[pos] = (char)byte;
		return 0;
	}
	dst[pos] = '\\';
	if (n == 4) {
		dst[pos + 1] = (char)('0' + (byte >> 6));
		dst[pos + 2] = (char)('0' + (byte >> 3 & 7));
		dst[pos + 3] = (char)('0' + (byte & 7));
	} else if (byte == '"' || byte == '\\') {
		dst[pos + 1] = (char)byte;
	} else {
		dst[pos + 1] = (char)(SHORT_FORMS >> ((byte - '\a') * 8 & 63));
	}
	return 0;
}

/*
 * A string that was cut ends in three dots, after the closing quote.  Both quotes and the dots count in the length,
 * which is why that is at least five.
 */
RT long rt_escape(u8 *work, const char *s, u64 size, u64 how)
{
	struct put *p = (struct put *)work;
	struct escape c = { p, (const u8 *)s, size, how >> 1 };
	char *dst = (char *)work + PUT_STATE;
	u64 quoted = how & 1;

	p->pos = 0;
	p->n = 0;
	if (!c.end || c.end > size - 1)
		c.end = size - 1;
	if (quoted) {
		c.end = (c.end < 5 ? 5 : c.end) - 1;
		put_byte(p, dst, size, '"');
	}
	p->to = p->pos;
	rt_loop((u32)size, escape_byte, &c, 0);
	if (quoted) {
		if (p->n)
			p->pos = p->to;
		put_byte(p, dst, size, '"');
		for (u32 k = 0; k < 3 && p->n; k++)
			put_byte(p, dst, size, '.');
	}
	if (p->pos < size)
		dst[p->pos] = '\0';
	return 0;
}

/* --- replacing ---------------------------------------------------------------------------------------- */

struct replace {
	struct put *p;		/* n: bytes of the string to skip */
	const u8 *s, *old;
	const char *new;
	u64 size, len, word, mask;	/* of the old one: length; the first bytes, at most eight */
};

struct same {
	const u8 *a, *b;
	u64 at, len, size, differ;
};

static long same_word(u32 k, struct same *c)
{
	u64 off = (u64)k * 8, at = c->at + off, differ;

	if (at >= c->size || off >= c->size)
		return 1;
	differ = *(const u64 *)(c->a + at) ^ *(const u64 *)(c->b + off);
	if (c->len - off < 8)
		differ &= (1ull << ((c->len - off) * 8 & 63)) - 1;
	c->differ |= differ;
	return differ != 0;
}

static long replace_at(u32 k, struct replace *c)
{
	char *dst = (char *)c->p + PUT_STATE;
	struct put *p = c->p;
	u64 pos;
	long n;

	if (k >= c->size || !c->s[k])
		return 1;
	if (p->n) {
		p->n--;
		return 0;
	}
	if ((*(const u64 *)(c->s + k) ^ c->word) & c->mask)
		return (long)put_byte(p, dst, c->size, (char)c->s[k]);
	if (c->len > 8) {
		struct same same = { c->s, c->old, k, c->len, c->size, 0 };

		rt_loop((u32)((c->len + 7) / 8), same_word, &same, 0);
		if (same.differ)
			return (long)put_byte(p, dst, c->size, (char)c->s[k]);
	}
	pos = p->pos;
	if (pos >= c->size)
		return 1;
	n = rt_copy_str(dst + pos, (u32)c->size, c->new);
	if (n > 0)
		pos += (u64)n - 1;
	p->pos = pos < c->size ? pos : c->size - 1;
	p->n = c->len - 1;
	return 0;
}

RT long rt_replace(u8 *work, const char *s, const char *old, const char *new, u64 size)
{
	struct put *p = (struct put *)work;
	struct replace c = { p, (const u8 *)s, (const u8 *)old, new, size };
	char *dst = (char *)work + PUT_STATE;

	p->n = (u64)rt_strlen(old, size);
	c.len = p->n;
	p->n = 0;
	p->pos = 0;
	if (!c.len) {
		rt_copy_str(dst, (u32)size, s);
		return 0;
	}
	c.word = *(const u64 *)old;
	c.mask = c.len < 8 ? (1ull << (c.len * 8 & 63)) - 1 : ~0ull;
	rt_loop((u32)size, replace_at, &c, 0);
	if (p->pos < size)
		dst[p->pos] = '\0';
	return 0;
}
