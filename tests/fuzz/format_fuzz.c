/*
 * Any text as a format of both languages, printed with arguments that fit and with ones that do not.  What
 * D prints for integers and strings is compared with the C library.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "out/printf.h"
#include "out/sink.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_ARGS = 64 };

static const int64_t ints[] = { 0, 1, -1, 42, 'A', 255, -300, 65536, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN };
static const char *const strings[] = { "", "a", "hello world", "\n\t\\\001\377" };

struct args {
	struct ir_value v[MAX_ARGS];
	struct ir_slot slots[MAX_ARGS];
	size_t n;
};

static void add_int(struct args *a, int64_t i, uint8_t width, bool sign)
{
	if (a->n == MAX_ARGS)
		return;
	a->v[a->n] = (struct ir_value){ .type = IR_INT, .i = i };
	a->slots[a->n++] = (struct ir_slot){ .type = IR_INT, .width = width, .sign = sign };
}

static void add_string(struct args *a, const char *s)
{
	if (a->n == MAX_ARGS)
		return;
	a->v[a->n] = (struct ir_value){ .type = IR_STR, .s = s };
	a->slots[a->n++] = (struct ir_slot){ .type = IR_STR };
}

/* Arguments as @f takes them, chosen by @seed. */
static void fit(struct args *a, const struct fmt *f, unsigned int seed)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct fmt_conv *c = &f->convs[i];

		seed = seed * 1103515245 + 12345;
		if (c->dyn_width)
			add_int(a, (int)(seed >> 16 & 63) - 32, 4, true);
		if (c->dyn_prec)
			add_int(a, (int)(seed >> 22 & 31) - 8, 4, true);
		if (c->kind == FMT_STRING)
			add_string(a, strings[seed >> 8 & 3]);
		else if (c->kind != FMT_NONE)
			add_int(a, ints[(seed >> 16) % 12], (uint8_t)(1u << (seed >> 12 & 3)), seed >> 14 & 1);
	}
}

/* One conversion without text around it, with 8-byte arguments: C prints the same. */
static void compare(const struct fmt *f, const struct args *a, const char *got)
{
	const struct fmt_conv *c = f->convs;
	char spec[64] = "%", want[70000], *p = spec + 1;
	const struct ir_value *v = &a->v[a->n - 1];

	if (f->n != 2 || c->lit_len || f->convs[1].lit_len || c->dyn_width || c->dyn_prec || c->size ||
	    (c->flags & (FMT_GROUP | FMT_AGG)) || !strchr("diuoxXs", c->letter) ||
	    (v->type == IR_INT && a->slots[a->n - 1].width != 8))
		return;
	if (c->flags & FMT_LEFT)
		*p++ = '-';
	if (c->flags & FMT_PLUS)
		*p++ = '+';
	if (c->flags & FMT_SPACE)
		*p++ = ' ';
	if (c->flags & FMT_ALT)
		*p++ = '#';
	if (c->flags & FMT_ZERO)
		*p++ = '0';
	if (c->has_width && c->width)
		p += sprintf(p, "%d", c->width);
	if (c->has_prec && c->prec)
		p += sprintf(p, ".%d", c->prec);
	if (v->type == IR_STR) {
		sprintf(p, "s");
		snprintf(want, sizeof(want), spec, v->s);
	} else {
		sprintf(p, "ll%c", strchr("di", c->letter) && !a->slots[a->n - 1].sign ? 'u' : c->letter);
		snprintf(want, sizeof(want), spec, (long long)v->i);
	}
	if (strcmp(got, want)) {
		fprintf(stderr, "%s: \"%s\", not \"%s\"\n", spec, got, want);
		__builtin_trap();
	}
}

static void check(struct arena *arena, enum fmt_lang lang, const char *s, size_t len)
{
	const char *err = NULL;
	size_t off = 0;
	struct fmt *f = fmt_parse(arena, lang, s, len, &err, &off);
	struct args a = { .n = 0 };
	struct out_sink sink;

	if (!f) {
		if (!err || !*err || off > len)
			__builtin_trap();
		return;
	}
	fit(&a, f, len ? (unsigned char)s[0] * 251u + (unsigned char)s[len - 1] : 0);
	out_open_mem(&sink);
	if (!out_printf(&sink, f, a.v, a.slots, a.n) && a.n && a.n == fmt_nargs(f) && lang == FMT_D)
		compare(f, &a, out_text(&sink));
	out_reset(&sink);
	for (size_t i = 0; i < a.n; i++)	/* and all wrong */
		if (a.v[i].type == IR_STR)
			a.v[i] = (struct ir_value){ .type = IR_INT };
		else
			a.v[i] = (struct ir_value){ .type = IR_STR, .s = "x" };
	out_printf(&sink, f, a.v, a.slots, a.n);
	if (sink.err)
		__builtin_trap();
	out_close(&sink);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *arena = arena_new();
	char *s = malloc(size + 1);

	if (arena && s) {
		memcpy(s, data, size);
		check(arena, FMT_D, s, size);
		check(arena, FMT_STP, s, size);
	}
	free(s);
	arena_free(arena);
	return 0;
}
