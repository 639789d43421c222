/*
 * The runtime library built for this machine, with sanitizers, against the C library and plain loops, on random strings.
 *
 * Its functions read and write memory that is as large as rt.h promises and not a byte larger: the sanitizer notices the
 * rest.  What lies behind a string's NUL is random, too.  The seed is printed; DTAP_SEED=N takes the same again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "abi/stat.h"

enum { ROUNDS = 20000 };

/* --- the runtime's functions, and what it asks of the kernel -------------------------------------------- */

typedef uint64_t u64;
typedef int64_t s64;

s64 rt_strlen(const char *s, u64 size);
s64 rt_strcmp(const char *a, const char *b, u64 size);
s64 rt_index(const char *a, const char *b, u64 size, s64 from);
s64 rt_rindex(const char *a, const char *b, u64 size, s64 from);
long rt_strchr(char *dst, const char *s, u64 size, u64 byte);
long rt_strrchr(char *dst, const char *s, u64 size, u64 byte);
long rt_strstr(char *dst, const char *a, const char *b, u64 size);
long rt_join(char *dst, const char *a, const char *b, u64 size);
long rt_substr(char *dst, const char *s, u64 size, s64 first, s64 count);
long rt_basename(char *dst, const char *s, u64 size);
long rt_dirname(char *dst, const char *s, u64 size);
long rt_toupper(char *dst, const char *s, u64 size);
long rt_tolower(char *dst, const char *s, u64 size);
u64 rt_lltostr(char *dst, s64 v, s64 base);
u64 rt_decimal(char *dst, u64 v);
s64 rt_strtol(const char *s, u64 size, s64 base);
u64 rt_byteat(const char *s, u64 size, s64 at);
u64 rt_log_bucket(s64 v);
u64 rt_linear_bucket(s64 v, s64 low, u64 width, u64 buckets);
long rt_square(u64 *w, s64 v, u64 n, u64 shift);
s64 rt_avg(const u64 *w);
s64 rt_variance(const u64 *w);

long rt_copy_str(void *dst, uint32_t size, const void *src);
long rt_copy(void *dst, uint32_t size, const void *src);
long rt_copy_from_user(void *dst, uint32_t size, u64 src);
long rt_loop(uint32_t n, void *fn, void *ctx, u64 flags);

/* bpf_probe_read_kernel_str: up to @size bytes with the NUL; how many. */
long rt_copy_str(void *dst, uint32_t size, const void *src)
{
	size_t n = strnlen(src, size);

	if (!size)
		return -7;
	if (n == size)
		n--;
	memcpy(dst, src, n);
	((char *)dst)[n] = '\0';
	return (long)n + 1;
}

long rt_copy(void *dst, uint32_t size, const void *src)
{
	memcpy(dst, src, size);
	return 0;
}

long rt_copy_from_user(void *dst, uint32_t size, u64 src)
{
	(void)dst, (void)size, (void)src;
	return -14;
}

long rt_loop(uint32_t n, void *fn, void *ctx, u64 flags)
{
	long (*turn)(uint32_t k, void *c) = (long (*)(uint32_t, void *))fn;
	uint32_t k;

	(void)flags;
	for (k = 0; k < n; k++)
		if (turn(k, ctx))
			return k + 1;
	return n;
}

/* --- random strings ------------------------------------------------------------------------------------ */

static uint64_t state;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1dull;
}

static uint64_t below(uint64_t n)
{
	return rnd() % n;
}

static u64 room(u64 size)
{
	return (size + 7) & ~7ull;
}

/* A number as often near an edge as anywhere. */
static s64 number(void)
{
	static const s64 edges[] = { 0, 1, -1, 2, 7, 8, 9, 255, 256, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT32_MAX, 300 };

	return below(2) ? edges[below(sizeof(edges) / sizeof(edges[0]))]
			: (s64)(rnd() >> below(64));
}

/* In memory of exactly room(@size) + 8 bytes, few different characters, garbage behind the NUL. */
static char *string(u64 size, const char *letters)
{
	size_t n = below(3) ? below(size) : size - 1, i;
	char *s = malloc(room(size) + 8);

	if (below(8) == 0)
		n = 0;
	for (i = 0; i < room(size) + 8; i++)
		s[i] = (char)rnd();
	for (i = 0; i < n; i++)
		s[i] = below(40) ? letters[below(strlen(letters))] : (char)(1 + below(255));
	s[n] = '\0';
	return s;
}

static char *buffer(u64 size)
{
	return malloc(room(size));
}

static u64 some_size(void)
{
	return below(2) ? 8 + below(40) : 8 + below(600);
}

/* --- what they have to do -------------------------------------------------------------------------------- */

static const char letters[] = "ab/A";

static int sign(s64 v)
{
	return (v > 0) - (v < 0);
}

static void one_string(void **ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		u64 size = some_size();
		char *s = string(size, letters), *dst = buffer(size), *copy = strdup(s);
		char byte = below(2) ? letters[below(4)] : (char)(1 + below(255));
		s64 len = (s64)strlen(s), k, at = number();
		const char *found;

		assert_int_equal(rt_strlen(s, size), len);
		rt_strchr(dst, s, size, (unsigned char)byte);
		found = strchr(s, byte);
		assert_string_equal(dst, found ? found : "");
		rt_strrchr(dst, s, size, (unsigned char)byte);
		found = strrchr(s, byte);
		assert_string_equal(dst, found ? found : "");
		rt_toupper(dst, s, size);
		for (k = 0; k <= len; k++)
			assert_int_equal(dst[k], s[k] >= 'a' && s[k] <= 'z' ? s[k] - 32 : s[k]);
		rt_tolower(dst, s, size);
		for (k = 0; k <= len; k++)
			assert_int_equal(dst[k], s[k] >= 'A' && s[k] <= 'Z' ? s[k] + 32 : s[k]);
		assert_int_equal(rt_byteat(s, size, at), at >= 0 && at < len ? (unsigned char)s[at] : 0);
		free(copy);
		free(s);
		free(dst);
	}
}

static void two_strings(void **ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		u64 size = some_size();
		char *a = string(size, letters), *b = string(below(3) ? size : 8, letters), *dst = malloc(2 * room(size) + 8);
		const char *found;

		b = realloc(b, room(size) + 8);
		if (!below(4))
			strcpy(b, a);
		assert_int_equal(sign(rt_strcmp(a, b, size)), sign(strcmp(a, b)));
		if (!below(3) && strlen(a))
			snprintf(b, size, "%.*s", (int)below(4) + 1, a + below(strlen(a)));
		rt_strstr(dst, a, b, size);
		found = *a ? strstr(a, b) : NULL;
		assert_string_equal(dst, found ? found : "");
		if (*a && *b)
			assert_int_equal(rt_index(a, b, size, 0), found ? found - a : -1);
		rt_join(dst, a, b, size);
		assert_memory_equal(dst, a, strlen(a));
		assert_string_equal(dst + strlen(a), b);
		free(a);
		free(b);
		free(dst);
	}
}

/* substr() as the DTrace guide has it, on plain indexes. */
static void plain_substr(char *dst, const char *s, s64 first, s64 count)
{
	s64 len = (s64)strlen(s), k, n = 0;
	__int128 from = first < 0 ? (__int128)first + len : first, to = count < 0 ? (__int128)len + count : from + count;

	for (k = 0; k < len; k++)
		if (k >= from && k < to)
			dst[n++] = s[k];
	dst[n] = '\0';
}

static void substrings(void **ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		u64 size = some_size();
		char *s = string(size, letters), *dst = buffer(size), *want = buffer(size);
		s64 first = below(2) ? (s64)below(size + 4) - 2 : number(), count = below(2) ? (s64)below(size + 4) - 2 : number();

		rt_substr(dst, s, size, first, count);
		plain_substr(want, s, first, count);
		/* Where a start before the string meets a count from its end the guide says nothing. */
		if (!(first < -(s64)strlen(s) && count < 0))
			assert_string_equal(dst, want);
		free(s);
		free(dst);
		free(want);
	}
}

/* basename(3) and dirname(3), POSIX: by hand, since the C library's change their argument. */
static void plain_base(char *dst, const char *s)
{
	size_t end = strlen(s), from;

	while (end > 1 && s[end - 1] == '/')
		end--;
	for (from = end; from && s[from - 1] != '/'; from--)
		;
	if (!end)
		strcpy(dst, ".");
	else if (end == 1 && *s == '/')
		strcpy(dst, "/");
	else
		sprintf(dst, "%.*s", (int)(end - from), s + from);
}

static void plain_dir(char *dst, const char *s)
{
	size_t end = strlen(s);

	while (end > 1 && s[end - 1] == '/')
		end--;
	while (end && s[end - 1] != '/')
		end--;
	if (!end) {
		strcpy(dst, ".");
		return;
	}
	while (end > 1 && s[end - 1] == '/')
		end--;
	sprintf(dst, "%.*s", (int)end, s);
}

static void paths(void **ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		u64 size = some_size();
		char *s = string(size, below(2) ? "a/" : "ab.//"), *dst = buffer(size), *want = buffer(size);

		rt_basename(dst, s, size);
		plain_base(want, s);
		assert_string_equal(dst, want);
		rt_dirname(dst, s, size);
		plain_dir(want, s);
		assert_string_equal(dst, want);
		free(s);
		free(dst);
		free(want);
	}
}

static void numbers(void **ctx)
{
	static const int bases[] = { 0, 2, 8, 10, 16, 36 };

	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		u64 size = 80;
		char *dst = malloc(72), *s = string(size, "0123456789abcdefxz-"), want[72], *end;
		s64 v = number();
		int base = bases[below(6)];
		s64 read;

		rt_lltostr(dst, v, 10);
		sprintf(want, "%lld", (long long)v);
		assert_string_equal(dst, want);
		rt_lltostr(dst, v, 16);
		sprintf(want, "%llx", (unsigned long long)v);
		assert_string_equal(dst, want);
		rt_decimal(dst, (u64)v);
		sprintf(want, "%llu", (unsigned long long)v);
		assert_string_equal(dst, want);
		if (below(2))	/* what fits; the C library saturates */
			snprintf(s, size, base == 16 ? "%s0x%llx" : base == 8 ? "%s0%llo" : "%s%lld", below(2) ? "-" : "",
				 (long long)(rnd() >> (2 + below(62))));
		s[20] = '\0';
		errno = 0;
		read = (s64)strtoull(*s == '-' ? s + 1 : s, &end, base);
		if (!errno && *s != '-' && (*s < '\t' || *s > '\r') && *s != ' ' && *s != '+')
			assert_int_equal(rt_strtol(s, size, base), read);
		free(dst);
		free(s);
	}
}

/* The sum in 128 bits; the variance by Welford's steps in as many (Knuth 2, 4.2.2), for values that fit SystemTap's 32. */
static void statistics(void **ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		u64 w[ABI_STAT_BUCKETS] = { 0 }, n = 1 + below(20), k;
		bool small = below(2);
		__int128 sum = 0, mean = 0, squares = 0, off;

		for (k = 1; k <= n; k++) {
			s64 v = small ? (s64)below(40000) - 20000 : (s64)rnd() >> below(64);
			__int128 delta;

			if (sum + v > INT64_MAX || sum + v < INT64_MIN)
				v = 0;
			sum += v;
			delta = v - mean;
			mean = k < 2 ? v : mean + delta / (__int128)k;
			if (small && k > 1)
				squares += delta * (v - mean);
			rt_square(&w[ABI_STAT_SQUARES], v, k, 0);
		}
		w[ABI_STAT_COUNT] = n;
		w[ABI_STAT_SUM] = (u64)(s64)sum;
		assert_int_equal(rt_avg(w), (s64)(sum / (s64)n));
		if (!small || n < 2)
			continue;
		assert_int_equal((s64)w[ABI_STAT_SQUARES], (s64)mean);
		assert_int_equal((s64)w[ABI_STAT_SQUARES + 1], (s64)squares);
		off = mean - sum / (__int128)n;
		assert_int_equal(rt_variance(w), (s64)(((__int128)n * off * off + (n - 1) * (squares / (__int128)(n - 1))) / (__int128)(n - 1)));
	}
}

static void buckets(void **ctx)
{
	(void)ctx;
	for (int i = 0; i < ROUNDS; i++) {
		s64 low = (s64)below(2000) - 1000, v = below(2) ? low + (s64)below(300) - 20 : number();
		u64 width = 1 + below(20), n = 2 + below(20), at = rt_linear_bucket(v, low, width, n), want = 0;

		/* The first is for all below, the last for all above. */
		if (v >= low)
			want = ((u64)v - (u64)low) / width + 1;
		assert_int_equal(at, want < n - 1 ? want : n - 1);
		assert_true(v == INT64_MAX || rt_log_bucket(v) <= rt_log_bucket(v + 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_string), cmocka_unit_test(two_strings), cmocka_unit_test(substrings),
		cmocka_unit_test(paths), cmocka_unit_test(numbers), cmocka_unit_test(statistics), cmocka_unit_test(buckets),
	};
	const char *seed = getenv("DTAP_SEED");

	state = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 2654435761u | 1;
	print_message("DTAP_SEED=%llu\n", (unsigned long long)state);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
