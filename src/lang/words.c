/*
 * Names of numbers, from words.def.
 */
#include "lang/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define W(NAME, NUMBER) { #NAME, (uint64_t)(NUMBER) }
#define N(TEXT, NUMBER) { TEXT, (uint64_t)(NUMBER) }

#define WORDS(NAME, KIND, WIDTH, BASE, ...) static const struct word words_of_##NAME[] = { __VA_ARGS__ };
#include "lang/words.def"
#undef WORDS

#define BITS true, false
#define RETURN false, true
#define CHOICE false, false
#define HEX false
#define DECIMAL true

static const struct words rows[WORDS_NR] = {
#define WORDS(NAME, KIND, WIDTH, BASE, ...) \
	{ #NAME, KIND, BASE, WIDTH, words_of_##NAME, sizeof(words_of_##NAME) / sizeof(*words_of_##NAME) },
#include "lang/words.def"
#undef WORDS
};

const struct words *words_row(unsigned int id)
{
	return &rows[id];
}

const char *words_of_none(const struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (!w->v[i].number)
			return w->v[i].text;
	return NULL;
}

static size_t put_number(const struct words *w, uint64_t number, char *buf, size_t size)
{
	if (!w->decimal)
		return (size_t)snprintf(buf, size, "0x%" PRIx64, number);
	return (size_t)snprintf(buf, size, "%" PRId64, w->width == 4 ? (int32_t)number : (int64_t)number);
}

static const char *choice(const struct words *w, uint64_t number, char *buf)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].number == number)
			return w->v[i].text;
	put_number(w, number, buf, WORDS_MAX);
	return buf;
}

const char *words_text(unsigned int id, uint64_t number, char *buf)
{
	const struct words *w = &rows[id];
	size_t len = 0;

	if (w->width == 4)
		number = (uint32_t)number;
	for (size_t i = 0; w->result && i < w->n; i++)
		if (w->v[i].number == number) {
			snprintf(buf, WORDS_MAX, "%" PRId64 " (%s)", (int64_t)number, w->v[i].text);
			return buf;
		}
	if (!w->bits || !number)
		return choice(w, number, buf);
	for (size_t i = 0; i < w->n; i++) {
		uint64_t bits = w->v[i].number;

		if (!bits || (number & bits) != bits)
			continue;
		len += (size_t)snprintf(buf + len, WORDS_MAX - len, "%s%s", len ? "|" : "", w->v[i].text);
		number &= ~bits;
	}
	if (number) {
		len += (size_t)snprintf(buf + len, WORDS_MAX - len, "%s", len ? "|" : "");
		put_number(w, number, buf + len, WORDS_MAX - len);
	}
	return buf;
}
