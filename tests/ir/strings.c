/*
 * The string functions of the runtime library, in the kernel, against C references, over many inputs.
 */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/record.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "bpf/ebpf.h"
#include "ir/layout.h"
#include "place/kernel.h"
#include "vm/record.h"

enum { STRSIZE_MAX = 64, ROUNDS = 1500 };

/* Of whole words, and of bytes more than words. */
static const uint32_t sizes_tried[] = { 64, 61, 57 };

static uint32_t strsize;

static const char program[] =
	"rec 0 fields s s s s s s s s i8 i8 i8 i8 s s\n"
	"clause \"\":\"\":\"\":\"\"\n"
	"regs iiiiiissssssssssiiiiiss\n"
	"b0:\n"
	"r0 = arg 0\n"
	"r1 = arg 1\n"
	"r2 = arg 2\n"
	"r3 = arg 3\n"
	"r4 = arg 4\n"
	"r5 = const 256\n"
	"r6 = call copyinstr r0 r5\n"
	"r7 = call copyinstr r1 r5\n"
	"r8 = call strjoin r6 r7\n"
	"r9 = call substr r6 r2 r3\n"
	"r10 = call strchr r6 r4\n"
	"r11 = call strrchr r6 r4\n"
	"r12 = call strstr r6 r7\n"
	"r13 = call basename r6\n"
	"r14 = call dirname r6\n"
	"r15 = call lltostr r2 r3\n"
	"r16 = call strlen r6\n"
	"r17 = call index r6 r7 r2\n"
	"r18 = call rindex r6 r7 r2\n"
	"r19 = strcmp r6 r7\n"
	"r21 = call toupper r6\n"
	"r22 = call tolower r6\n"
	"emit 0 r8 r9 r10 r11 r12 r13 r14 r15 r16 r17 r18 r19 r21 r22\n"
	"ret\n";

/* --- references --------------------------------------------------------------------------------------- */

struct input {
	char a[128], b[128];
	int64_t x, y, c;
};

struct output {
	char s[14][STRSIZE_MAX * 2 + 8];
	int64_t i[14];
};

static void ref_substr(char *out, const char *s, int64_t first, int64_t count)
{
	int64_t len = (int64_t)strlen(s), from = first < 0 ? first + len : first, to;

	to = count < 0 ? len + count : from + count;
	if (from < 0 && count < 0)
		to = 0;
	if (from < 0)
		from = 0;
	if (to > len)
		to = len;
	if (from < to)
		snprintf(out, strsize, "%.*s", (int)(to - from), s + from);
	else
		*out = '\0';
}

static int64_t ref_index(const char *a, const char *b, int64_t from)
{
	for (int64_t k = from < 0 ? 0 : from; k <= (int64_t)strlen(a); k++) {
		if (!strncmp(a + k, b, strlen(b)))
			return k;
	}
	return -1;
}

static int64_t ref_rindex(const char *a, const char *b, int64_t from)
{
	int64_t last = (int64_t)strlen(a) - (int64_t)strlen(b);

	for (int64_t k = from < last ? from : last; k >= 0; k--) {
		if (!strncmp(a + k, b, strlen(b)))
			return k;
	}
	return -1;
}

static void ref_lltostr(char *out, int64_t v, int64_t base)
{
	uint64_t x = (uint64_t)v;
	char text[80], *p = text + sizeof(text) - 1;

	*p = '\0';
	if (base == 10 && v < 0)
		x = -x;
	if (base >= 2 && base <= 36) {
		do {
			*--p = "0123456789abcdefghijklmnopqrstuvwxyz"[x % (uint64_t)base];
			x /= (uint64_t)base;
		} while (x);
		if (base == 10 && v < 0)
			*--p = '-';
	}
	snprintf(out, strsize, "%s", p);
}

static void copy(char *out, const char *s)
{
	size_t len = s ? strnlen(s, strsize - 1) : 0;

	memcpy(out, len ? s : "", len);
	out[len] = '\0';
}

static void reference(const struct input *in, struct output *out)
{
	char a[STRSIZE_MAX], b[STRSIZE_MAX], tmp[STRSIZE_MAX];
	int cmp;

	copy(a, in->a);
	copy(b, in->b);
	memset(out, 0, sizeof(*out));
	snprintf(out->s[0], sizeof(out->s[0]), "%s%s", a, b);
	out->s[0][strsize - 1] = '\0';
	ref_substr(out->s[1], a, in->x, in->y);
	copy(out->s[2], in->c & 0xff ? strchr(a, (int)in->c & 0xff) : "");
	copy(out->s[3], in->c & 0xff ? strrchr(a, (int)in->c & 0xff) : "");
	copy(out->s[4], strstr(a, b));
	copy(tmp, a);
	copy(out->s[5], basename(tmp));
	copy(tmp, a);
	copy(out->s[6], dirname(tmp));
	if (!strcmp(out->s[6], "//"))	/* POSIX leaves it to the system; glibc differs from the guide's */
		out->s[6][1] = '\0';
	ref_lltostr(out->s[7], in->x, in->y);
	out->i[8] = (int64_t)strlen(a);
	out->i[9] = ref_index(a, b, in->x);
	out->i[10] = ref_rindex(a, b, in->x);
	cmp = strcmp(a, b);
	out->i[11] = (cmp > 0) - (cmp < 0);
	for (uint32_t k = 0; k < strsize; k++) {
		out->s[12][k] = a[k] >= 'a' && a[k] <= 'z' ? (char)(a[k] - 32) : a[k];
		out->s[13][k] = a[k] >= 'A' && a[k] <= 'Z' ? (char)(a[k] + 32) : a[k];
		if (!a[k])
			break;
	}
}

/* --- inputs ------------------------------------------------------------------------------------------- */

static uint32_t rnd(uint32_t n)
{
	static uint32_t state = 12345;	/* a fixed sequence: a failure can be repeated */

	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

static void random_string(char *out, uint32_t max)
{
	static const char *const alphabets[] = { "/a", "ab", "/ab.", "aAzZ@[`{0\x80\xff", "a" };
	const char *from = alphabets[rnd(5)];
	uint32_t len = rnd(4) ? rnd(max) : rnd(4);

	for (uint32_t k = 0; k < len; k++)
		out[k] = from[rnd((uint32_t)strlen(from))];
	out[len] = '\0';
}

static void random_input(struct input *in)
{
	random_string(in->a, 90);
	random_string(in->b, rnd(3) ? 4 : rnd(2) ? 20 : 90);
	if (!rnd(4)) {
		/* a part of a, so that there is something to find */
		uint32_t len = (uint32_t)strlen(in->a), from = rnd(len + 1);

		snprintf(in->b, sizeof(in->b), "%.*s", (int)rnd(len - from + 1), in->a + from);
	}
	in->x = rnd(3) ? (int64_t)rnd(140) - 70 : (int64_t)rnd(1 << 24) * (1 << 24) * (rnd(2) ? 1 : -3);
	in->y = rnd(3) ? (int64_t)rnd(80) - 40 : rnd(2) ? (int64_t)rnd(1 << 24) * (1 << 20) : 10;
	in->c = "/ab."[rnd(5)];
}

/* --- running ------------------------------------------------------------------------------------------ */

struct check {
	const struct ir_prog *prog;
	const struct input *in;
	unsigned int records, failures;
};

static int check_record(void *ctx, const struct record *rec)
{
	static const char *const names[] = { "strjoin", "substr", "strchr", "strrchr", "strstr", "basename", "dirname",
					     "lltostr", "strlen", "index", "rindex", "strcmp", "toupper", "tolower" };
	struct check *c = ctx;
	struct ir_value got[14];
	struct output want;

	c->records++;
	if (rec->hdr->rec || ir_rec_decode(c->prog->recs[0], rec->hdr, rec->size, got)) {
		fprintf(stderr, "an error or a malformed record\n");
		c->failures++;
		return 0;
	}
	reference(c->in, &want);
	got[11].i = (got[11].i > 0) - (got[11].i < 0);
	for (int k = 0; k < 14; k++) {
		if (got[k].type == IR_STR ? !strcmp(got[k].s, want.s[k]) : got[k].i == want.i[k])
			continue;
		c->failures++;
		fprintf(stderr, "%s of \"%s\" \"%s\" %" PRId64 " %" PRId64 " %" PRId64 ": ", names[k], c->in->a, c->in->b,
			c->in->x, c->in->y, c->in->c);
		if (got[k].type == IR_STR)
			fprintf(stderr, "\"%s\" instead of \"%s\"\n", got[k].s, want.s[k]);
		else
			fprintf(stderr, "%" PRId64 " instead of %" PRId64 "\n", got[k].i, want.i[k]);
	}
	return 0;
}

/* 0; 1 after failures; 77 where nothing can be run. */
static int run(void)
{
	struct ebpf_sizes sizes = { .bufsize = 1 << 20, .nprobes = 1, .ncpus = 2 };
	struct ebpf_env env = { .ctx = EBPF_CTX_RUN };
	struct arena *a = arena_new();
	struct strbuf text = { 0 };
	struct place *place = NULL;
	struct check c = { 0 };
	const char *err;
	struct ebpf_unit *u;
	struct ebpf_prog *p;
	struct ir_prog *prog;
	int number;

	prog = ir_read(a, program, &err);
	if (prog)
		prog->strsize = strsize;
	if (!prog || (err = ir_check(prog))) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	u = ebpf_unit_new(prog, &sizes, &err);
	p = u ? ebpf_compile(u, &env, prog->clauses, 1, NULL, 0, &err) : NULL;
	if (!p) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	if (kernel_available(&text) || kernel_new(u, &place, &text)) {
		printf("skipped: %s\n", strbuf_str(&text));
		return 77;
	}
	number = place->ops->load(place, p, false, &text, NULL);
	if (number < 0) {
		fprintf(stderr, "%s\n", strbuf_str(&text));
		return 1;
	}
	place->ops->set_state(place, ABI_STATE_ACTIVE);
	c.prog = prog;
	for (int k = 0; k < ROUNDS && c.failures < 20; k++) {
		struct input in = { .a = "" };
		uint64_t args[10];

		random_input(&in);
		args[0] = (uint64_t)(uintptr_t)in.a;
		args[1] = (uint64_t)(uintptr_t)in.b;
		args[2] = (uint64_t)in.x;
		args[3] = (uint64_t)in.y;
		args[4] = (uint64_t)in.c;
		c.in = &in;
		if (place->ops->run(place, number, 0, args)) {
			fprintf(stderr, "cannot run the program\n");
			c.failures++;
		}
		place->ops->drain(place, check_record, &c);
	}
	if (c.records != ROUNDS && !c.failures) {
		fprintf(stderr, "%u records of %d\n", c.records, ROUNDS);
		c.failures++;
	}
	place_free(place);
	strbuf_fini(&text);
	arena_free(a);
	return c.failures ? 1 : 0;
}

int main(void)
{
	int result = 0;

	for (size_t k = 0; k < sizeof(sizes_tried) / sizeof(*sizes_tried) && !result; k++) {
		strsize = sizes_tried[k];
		result = run();
	}
	return result;
}
