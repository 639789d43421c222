/*
 * Strings, eight bytes at a time.
 */
#include "rt.h"

enum { NONE = -1 };

/* --- scanning ---------------------------------------------------------------------------------------- */

/* What one walk over a string finds: its length, and the first and the last of one byte before @end. */
struct scan {
	const u8 *s;
	u64 size, end;
	u64 byte;		/* in each of the eight bytes */
	s64 len, first, last;
};

static long scan_word(u32 k, struct scan *c)
{
	u64 word, nul, hit;
	u64 at = (u64)k * 8;

	if (at >= c->size)
		return 1;
	word = *(const u64 *)(c->s + at);
	nul = zero_bytes(word);
	hit = zero_bytes(word ^ c->byte);
	if (nul) {
		c->len = at + lowest(nul);
		hit &= (nul & -nul) - 1;	/* before the NUL */
	}
	/* Bytes from end on do not count. */
	if (c->end < at + 8)
		hit &= c->end > at ? (1ull << ((c->end - at) * 8 & 63)) - 1 : 0;
	if (hit) {
		if (c->first < 0)
			c->first = at + lowest(hit);
		c->last = at + highest(hit);
	}
	return nul != 0;
}

static inline __attribute__((always_inline)) void scan(struct scan *c, const char *s, u64 size, u8 byte, u64 end)
{
	c->s = (const u8 *)s;
	c->size = room(size);
	c->end = end;
	c->byte = byte * 0x0101010101010101ull;
	c->len = 0;
	c->first = c->last = NONE;
	rt_loop((u32)c->size / 8, scan_word, c, 0);
}

RT s64 rt_strlen(const char *s, u64 size)
{
	struct scan c;

	scan(&c, s, size, 1, 0);
	return c.len;
}

/* Copy from index @from on; the empty string for NONE. */
static inline __attribute__((always_inline)) void copy_from(char *dst, const char *s, u64 size, s64 from)
{
	if (from < 0 || from >= (s64)size) {
		*dst = '\0';
		return;
	}
	rt_copy_str(dst, (u32)size, s + from);
}

RT long rt_strchr(char *dst, const char *s, u64 size, u64 byte)
{
	struct scan c;

	scan(&c, s, size, (u8)byte, ~0ull);
	/* The NUL is a byte of the string, too. */
	copy_from(dst, s, size, (u8)byte ? c.first : NONE);
	return 0;
}

RT long rt_strrchr(char *dst, const char *s, u64 size, u64 byte)
{
	struct scan c;

	scan(&c, s, size, (u8)byte, ~0ull);
	copy_from(dst, s, size, (u8)byte ? c.last : NONE);
	return 0;
}

/* --- comparing --------------------------------------------------------------------------------------- */

struct compare {
	const u8 *a, *b;
	u64 size;
	s64 result;
};

static long compare_word(u32 k, struct compare *c)
{
	u64 x, y, stop;
	u64 at = (u64)k * 8, shift;

	if (at >= c->size)
		return 1;
	x = *(const u64 *)(c->a + at);
	y = *(const u64 *)(c->b + at);
	stop = zero_bytes(x) | (zero_bytes(x ^ y) ^ 0x8080808080808080ull);
	if (!stop)
		return 0;
	shift = lowest(stop) * 8 & 63;
	c->result = (s64)(x >> shift & 0xff) - (s64)(y >> shift & 0xff);
	return 1;
}

RT s64 rt_strcmp(const char *a, const char *b, u64 size)
{
	struct compare c = { (const u8 *)a, (const u8 *)b, room(size), 0 };

	rt_loop((u32)c.size / 8, compare_word, &c, 0);
	return c.result;
}

/* --- searching --------------------------------------------------------------------------------------- */

struct search {
	const u8 *a, *b;
	u64 size;
	u64 from, alen, blen;
	u64 down;		/* towards lower indexes */
	u64 at;			/* the index being tried */
	u64 word, mask;		/* the first bytes of b, at most eight */
	s64 found;
	u64 differ;
};

/* Compare word k of b with a's at the index being tried. */
static long search_word(u32 k, struct search *c)
{
	u64 off = (u64)k * 8, at = c->at + off, left;
	u64 diff;

	if (off >= c->size || at >= c->size)
		return 1;
	diff = *(const u64 *)(c->a + at) ^ *(const u64 *)(c->b + off);
	left = c->blen - off;
	if (left < 8)
		diff &= (1ull << (left * 8 & 63)) - 1;
	c->differ = diff != 0;
	return c->differ;
}

static long search_at(u32 k, struct search *c)
{
	u64 at = c->down ? c->from - k : c->from + k;

	if (at >= c->size)
		return 1;
	if ((*(const u64 *)(c->a + at) ^ c->word) & c->mask)
		return 0;
	if (c->blen > 8) {
		c->at = at;
		rt_loop((u32)((c->blen + 7) / 8), search_word, c, 0);
		if (c->differ)
			return 0;
	}
	c->found = at;
	return 1;
}

/* The first (@down: the last) index of @b in @a, from index @from on; NONE. */
static s64 find(const char *a, const char *b, u64 size, s64 from, u64 down)
{
	struct search c;
	u64 n;

	c.a = (const u8 *)a;
	c.b = (const u8 *)b;
	c.size = size;
	c.at = 0;
	c.differ = 0;
	c.found = NONE;
	c.down = down;
	c.alen = (u64)rt_strlen(a, size);
	c.blen = (u64)rt_strlen(b, size);
	if (c.blen > c.alen)
		return NONE;
	c.word = *(const u64 *)b;
	c.mask = c.blen < 8 ? (1ull << (c.blen * 8 & 63)) - 1 : ~0ull;
	n = c.alen - c.blen + 1;		/* indexes where it may be */
	if (down) {
		if (from < 0)
			return NONE;
		c.from = (u64)from >= n ? n - 1 : (u64)from;
		n = c.from + 1;
	} else {
		if (from < 0)
			from = 0;
		if ((u64)from >= n)
			return NONE;
		c.from = (u64)from;
		n -= c.from;
	}
	rt_loop((u32)n, search_at, &c, 0);
	return c.found;
}

RT s64 rt_index(const char *a, const char *b, u64 size, s64 from)
{
	return find(a, b, size, from, 0);
}

RT s64 rt_rindex(const char *a, const char *b, u64 size, s64 from)
{
	return find(a, b, size, from, 1);
}

RT long rt_strstr(char *dst, const char *a, const char *b, u64 size)
{
	copy_from(dst, a, size, find(a, b, size, 0, 0));
	return 0;
}

/* --- making ------------------------------------------------------------------------------------------ */

RT long rt_join(char *dst, const char *a, const char *b, u64 size)
{
	long n = rt_copy_str(dst, (u32)size, a);

	if (n < 1 || n > (long)size)
		return 0;
	rt_copy_str(dst + n - 1, (u32)size, b);
	return 0;
}

/* Copy the bytes of @s from @from on, before @to. */
static inline __attribute__((always_inline)) void copy_range(char *dst, const char *s, u64 size, s64 from, s64 to)
{
	u64 n;

	*dst = '\0';
	if (from < 0 || from >= (s64)size || to <= from)
		return;
	n = (u64)(to - from) + 1;
	if (n > size)
		n = size;
	rt_copy_str(dst, (u32)n, s + from);
}

RT long rt_substr(char *dst, const char *s, u64 size, s64 first, s64 count)
{
	s64 len = rt_strlen(s, size), to;

	if (first < 0)
		first += len;
	if (first < 0) {
		/* Starts before the string: the characters missing there count, but are not copied. */
		count = count < 0 || count + first < 0 ? 0 : count + first;
		first = 0;
	}
	if (count < 0)
		to = len + count;
	else
		to = count > len - first ? len : first + count;
	copy_range(dst, s, size, first, to);
	return 0;
}

/* The end of @s without trailing slashes; 0 if it has nothing else. */
struct strip {
	const u8 *s;
	u64 size, end;
};

static long strip_slash(u32 k, struct strip *c)
{
	u64 at = c->end - 1;

	if (!c->end || at >= c->size || c->s[at] != '/')
		return 1;
	c->end = at;
	return 0;
}

static inline __attribute__((always_inline)) u64 strip(const char *s, u64 size, u64 end)
{
	struct strip c = { (const u8 *)s, size, end };

	rt_loop((u32)end, strip_slash, &c, 0);
	return c.end;
}

static inline __attribute__((always_inline)) void short_str(char *dst, char c)
{
	dst[0] = c;
	dst[1] = '\0';
}

RT long rt_basename(char *dst, const char *s, u64 size)
{
	struct scan c;
	u64 end;

	scan(&c, s, size, '/', ~0ull);
	end = (u64)c.len;
	if (c.last >= 0 && c.last == c.len - 1) {
		end = strip(s, size, end);
		if (!end) {
			short_str(dst, '/');
			return 0;
		}
		scan(&c, s, size, '/', end);
	}
	if (!end)
		short_str(dst, '.');
	else
		copy_range(dst, s, size, c.last + 1, end);
	return 0;
}

RT long rt_dirname(char *dst, const char *s, u64 size)
{
	struct scan c;
	u64 end;

	end = (u64)rt_strlen(s, size);
	if (end)
		end = strip(s, size, end);
	if (!end) {
		/* "" or nothing but slashes */
		short_str(dst, *s == '/' ? '/' : '.');
		return 0;
	}
	scan(&c, s, size, '/', end);
	if (c.last < 0) {
		short_str(dst, '.');
		return 0;
	}
	end = strip(s, size, (u64)c.last + 1);
	if (!end)
		short_str(dst, '/');
	else
		copy_range(dst, s, size, 0, end);
	return 0;
}

/* --- cases ------------------------------------------------------------------------------------------- */

struct cases {
	const u8 *s;
	u8 *dst;
	u64 size;
	u64 from, to;		/* to add to each byte: carries from the first letter on, after the last letter */
};

static long case_word(u32 k, struct cases *c)
{
	const u64 high = 0x8080808080808080ull;
	u64 at = (u64)k * 8;
	u64 x, low, in;

	if (at >= c->size)
		return 1;
	x = *(const u64 *)(c->s + at);
	low = x & ~high;
	/* Adding 0x80 - bound carries into a byte's high bit when it is not below the bound. */
	in = (low + c->from) & ~(low + c->to) & ~x & high;
	*(u64 *)(c->dst + at) = x ^ (in >> 2);
	return zero_bytes(x) != 0;
}

static inline __attribute__((always_inline)) void change_case(char *dst, const char *s, u64 size, u8 first)
{
	const u64 ones = 0x0101010101010101ull;
	struct cases c = { (const u8 *)s, (u8 *)dst, room(size), (0x80ull - first) * ones,
			   (0x80ull - first - 26) * ones };

	rt_loop((u32)c.size / 8, case_word, &c, 0);
}

RT long rt_toupper(char *dst, const char *s, u64 size)
{
	change_case(dst, s, size, 'a');
	return 0;
}

RT long rt_tolower(char *dst, const char *s, u64 size)
{
	change_case(dst, s, size, 'A');
	return 0;
}

static long blank_word(u32 k, struct cases *c)
{
	u64 at = (u64)k * 8, max = c->to, end = c->size, x, zeros;

	if (at >= max || at >= end)
		return 1;
	x = *(const u64 *)(c->s + at);
	zeros = zero_bytes(x);
	if (end - at < 8)	/* bytes after the string must not change */
		zeros &= (1ull << (end - at) * 8) - 1;
	*(u64 *)(c->dst + at) = x | zeros >> 2;	/* 0x80 becomes 0x20 */
	return 0;
}

RT long rt_blanks(char *dst, u64 size, u64 len)
{
	struct cases c = { (const u8 *)dst, (u8 *)dst, len, 0, room(size) };

	rt_loop((u32)c.to / 8, blank_word, &c, 0);
	return 0;
}
