/* Floats and large ints as text, against the C library and against arithmetic on the digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/digits.h"

/* xorshift64*: the same numbers with each run. */
static uint64_t seed = 14;

static uint64_t any(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 2685821657736338717u;
}

/* How many digits a decimal has that reads back as @v, and its exponent; fewer do not, if the nearest ones do not. */
static int digits_needed(double v, int *exponent)
{
	char text[64];

	for (int n = 1; n <= 17; n++) {
		snprintf(text, sizeof(text), "%.*e", n - 1, v);
		if (strtod(text, NULL) == v) {
			*exponent = atoi(strchr(text, 'e') + 1);
			return n;
		}
	}
	fail_msg("%a: 17 digits do not do", v);
	return 0;
}

/* The digits of @text before its exponent, without zeros in front and, those being for the form alone, at the end. */
static int digits_of(const char *text)
{
	int n = 0, zeros = 0;

	for (; *text && *text != 'e'; text++) {
		if (*text < '0' || *text > '9')
			continue;
		zeros = *text == '0' ? zeros + 1 : 0;
		n += n || *text != '0';
	}
	return n - (zeros < n ? zeros : n);
}

static void check_float(double v)
{
	char text[DIGITS_FLOAT];
	uint32_t n = digits_float(text, v);
	int exponent = 0, needed = digits_needed(v, &exponent);
	char *end;

	assert_int_equal(n, strlen(text));
	if (strtod(text, &end) != v || *end)
		fail_msg("%a is %s", v, text);
	if (digits_of(text) > needed)
		fail_msg("%a is %s, though %d digits do", v, text, needed);
	if ((strchr(text, 'e') != NULL) != (exponent < -4 || exponent >= 16) || (!strchr(text, 'e') && !strchr(text, '.')))
		fail_msg("%a is %s: not repr()'s form", v, text);
}

static void floats(void **state)
{
	static const double some[] = { 1, 0.1, 0.5, 1.5, 1e15, 9999999999999998, 1e16, 1e17, 123456789012345678, 1e22, 1e23, 1e-4, 1e-5,
				       0.00012345, 5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308,
				       9007199254740993, 4.35, 2.5e-15, 0x1p-44, 0x1p1000, 0x1p-1022, 1.0 / 3 };
	char text[DIGITS_FLOAT];

	(void)state;
	for (size_t k = 0; k < sizeof(some) / sizeof(*some); k++) {
		check_float(some[k]);
		check_float(-some[k]);
	}
	for (int k = 0; k < 5000; k++) {
		uint64_t bits = any();
		double v;

		memcpy(&v, &bits, sizeof(v));
		if (isfinite(v) && v != 0)
			check_float(v);
		check_float((double)(int64_t)any() / 1000);
		check_float(ldexp(1, (int)(any() % 2000) - 1000));
	}
	for (int k = 0; k < 4; k++) {
		static const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY };
		static const char *const want[] = { "0.0", "-0.0", "inf", "-inf" };

		assert_int_equal(digits_float(text, odd[k]), strlen(want[k]));
		assert_string_equal(text, want[k]);
	}
	assert_int_equal(digits_float(text, NAN), 3);
	assert_string_equal(text, "nan");
}

/* The number modulo @by: of its digits of 30 bits, and of its text. */
static uint64_t rest_of_digits(const uint32_t *v, uint32_t n, uint64_t by)
{
	uint64_t rest = 0;

	while (n--)
		rest = ((rest << 30) | v[n]) % by;
	return rest;
}

static uint64_t rest_of_text(const char *text, uint64_t by)
{
	uint64_t rest = 0;

	for (; *text; text++)
		rest = (rest * 10 + (uint64_t)(*text - '0')) % by;
	return rest;
}

static void ints(void **state)
{
	static const uint64_t primes[] = { 2147483647, 4294967291, 998244353, 3, 1024 };
	static uint32_t v[DIGITS_INT_MOST], copy[DIGITS_INT_MOST];
	const char *text;

	(void)state;
	for (int round = 0; round < 300; round++) {
		uint32_t n = round < 3 ? DIGITS_INT_MOST : 1 + (uint32_t)(any() % (round < 200 ? 5 : DIGITS_INT_MOST)), len;
		bool below = any() & 1;

		for (uint32_t k = 0; k < n; k++)
			v[k] = round == 0 ? (1u << 30) - 1 : (uint32_t)any() & ((1u << 30) - 1);
		v[n - 1] |= 1;
		memcpy(copy, v, sizeof(v));
		len = digits_int(v, n, below, &text);
		assert_int_equal(len, strlen(text));
		assert_int_equal(*text == '-', below);
		text += below;
		assert_true(*text >= '1' && *text <= '9');
		for (size_t k = 0; k < sizeof(primes) / sizeof(*primes); k++)
			assert_int_equal(rest_of_text(text, primes[k]), rest_of_digits(copy, n, primes[k]));
	}
	v[0] = 0;
	assert_int_equal(digits_int(v, 1, false, &text), 1);
	assert_string_equal(text, "0");
	v[0] = 1000000000 & ((1u << 30) - 1);
	assert_int_equal(digits_int(v, 1, true, &text), 11);
	assert_string_equal(text, "-1000000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floats),
		cmocka_unit_test(ints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
