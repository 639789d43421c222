#include "lang/regex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum kind { EMPTY, CHAR, ANY, SET, BEGIN, END, SEQUENCE, CHOICE, REPEAT, GROUP };

enum { MAX_DEPTH = 100, MAX_REPEAT = 255, NO_LIMIT = -1 };

struct node {
	enum kind kind;
	struct node *l, *r;
	int min, max;			/* REPEAT */
	unsigned int group;
	unsigned char byte;
	uint64_t set[4];
};

struct compiler {
	struct arena *arena;
	const char *p, *err;
	unsigned int groups, depth;
	bool saves;
	uint64_t code[REGEX_MAX_CODE];
	uint64_t (*sets)[4];
	size_t sets_cap;
	uint32_t ncode, nsets;
};

static struct node *new(struct compiler *c, enum kind kind)
{
	struct node *n = arena_new_of(c->arena, struct node);

	n->kind = kind;
	return n;
}

static struct node *fail(struct compiler *c, const char *why)
{
	if (!c->err)
		c->err = why;
	return new(c, EMPTY);
}

/* --- grammar ------------------------------------------------------------------------------------------- */

static struct node *choice(struct compiler *c);

static void add(struct node *n, unsigned char byte)
{
	n->set[byte / 64] |= 1ull << byte % 64;
}

/* "[:" name ":]" */
static bool named(struct compiler *c, struct node *n)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} classes[] = {
		{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank }, { "cntrl", iscntrl },
		{ "digit", isdigit }, { "graph", isgraph }, { "lower", islower }, { "print", isprint },
		{ "punct", ispunct }, { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
	};

	for (size_t k = 0; k < sizeof(classes) / sizeof(classes[0]); k++) {
		size_t len = strlen(classes[k].name);

		if (strncmp(c->p + 2, classes[k].name, len) || strncmp(c->p + 2 + len, ":]", 2))
			continue;
		for (int b = 1; b < 128; b++) {
			if (classes[k].is(b))
				add(n, (unsigned char)b);
		}
		c->p += 4 + len;
		return true;
	}
	return false;
}

/* set = "[" ["^"] {byte | byte "-" byte | class} "]"; a leading "]" is a byte. */
static struct node *set(struct compiler *c)
{
	struct node *n = new(c, SET);
	bool not = *++c->p == '^', first = true;

	c->p += not;
	for (; *c->p && (*c->p != ']' || first); first = false) {
		unsigned char from = (unsigned char)*c->p, to = from;

		if (c->p[0] == '[' && c->p[1] == ':') {
			if (!named(c, n))
				return fail(c, "unknown character class");
			continue;
		}
		if (from == '\\' && c->p[1])
			to = from = (unsigned char)*++c->p;
		c->p++;
		if (c->p[0] == '-' && c->p[1] && c->p[1] != ']') {
			to = (unsigned char)c->p[1];
			c->p += 2;
		}
		if (to < from)
			return fail(c, "a range that ends before it begins");
		for (int b = from; b <= to; b++)
			add(n, (unsigned char)b);
	}
	if (!*c->p)
		return fail(c, "[ without ]");
	c->p++;
	for (int k = 0; not && k < 4; k++)
		n->set[k] = ~n->set[k];
	return n;
}

static struct node *group(struct compiler *c)
{
	struct node *n = new(c, GROUP);

	n->group = ++c->groups;
	if (++c->depth > MAX_DEPTH)
		return fail(c, "too many parentheses inside each other");
	c->p++;
	n->l = choice(c);
	c->depth--;
	if (*c->p != ')')
		return fail(c, "( without )");
	c->p++;
	return n;
}

/* atom = "(" choice ")" | set | "." | "^" | "$" | "\" byte | byte */
static struct node *atom(struct compiler *c)
{
	struct node *n;

	switch (*c->p) {
	case '(':
		return group(c);
	case '[':
		return set(c);
	case '.':
		c->p++;
		return new(c, ANY);
	case '^':
		c->p++;
		return new(c, BEGIN);
	case '$':
		c->p++;
		return new(c, END);
	case '*':
	case '+':
	case '?':
	case '{':
		return fail(c, "nothing to repeat");
	case '\\':
		if (!*++c->p)
			return fail(c, "\\ at the end");
		break;
	default:
		break;
	}
	n = new(c, CHAR);
	n->byte = (unsigned char)*c->p++;
	return n;
}

/* "{" m ["," [n]] "}" */
static bool bounds(struct compiler *c, int *min, int *max)
{
	char *end;

	c->p++;
	if (!isdigit((unsigned char)*c->p))
		return false;
	*max = *min = (int)strtol(c->p, &end, 10);
	c->p = end;
	if (*c->p == ',') {
		*max = NO_LIMIT;
		if (isdigit((unsigned char)*++c->p)) {
			*max = (int)strtol(c->p, &end, 10);
			c->p = end;
		}
	}
	return *c->p++ == '}' && *min <= MAX_REPEAT && *max <= MAX_REPEAT && (*max == NO_LIMIT || *max >= *min);
}

/* piece = atom {"*" | "+" | "?" | "{" ... "}"} */
static struct node *piece(struct compiler *c)
{
	struct node *n = atom(c);

	while (!c->err && *c->p && strchr("*+?{", *c->p)) {
		struct node *r = new(c, REPEAT);

		r->l = n;
		r->min = *c->p == '+';
		r->max = *c->p == '?' ? 1 : NO_LIMIT;
		if (*c->p != '{')
			c->p++;
		else if (!bounds(c, &r->min, &r->max))
			return fail(c, "a malformed {}");
		n = r;
	}
	return n;
}

/* sequence = {piece} */
static struct node *sequence(struct compiler *c)
{
	struct node *n = NULL;

	while (!c->err && *c->p && *c->p != '|' && *c->p != ')') {
		struct node *next = piece(c), *s;

		if (!n) {
			n = next;
			continue;
		}
		s = new(c, SEQUENCE);
		s->l = n;
		s->r = next;
		n = s;
	}
	return n ? n : new(c, EMPTY);
}

/* choice = sequence {"|" sequence} */
static struct node *choice(struct compiler *c)
{
	struct node *n = sequence(c);

	while (!c->err && *c->p == '|') {
		struct node *either = new(c, CHOICE);

		c->p++;
		either->l = n;
		either->r = sequence(c);
		n = either;
	}
	return n;
}

/* --- code ---------------------------------------------------------------------------------------------- */

static uint32_t put(struct compiler *c, enum regex_op op, uint64_t x, uint64_t y)
{
	if (c->ncode == REGEX_MAX_CODE) {
		fail(c, "it is too long");
		return 0;
	}
	c->code[c->ncode] = (uint64_t)op | x << 16 | y << 32;
	return c->ncode++;
}

static void patch(struct compiler *c, uint32_t at, uint64_t x, uint64_t y)
{
	c->code[at] = (c->code[at] & 0xff) | x << 16 | y << 32;
}

static void emit(struct compiler *c, const struct node *n);

/* @n any number of times, greedily: split L1 L2; L1: n; jmp split; L2. */
static void emit_star(struct compiler *c, const struct node *n)
{
	uint32_t split = put(c, REGEX_SPLIT, 0, 0);

	emit(c, n);
	put(c, REGEX_JMP, split, 0);
	patch(c, split, split + 1, c->ncode);
}

static void emit_repeat(struct compiler *c, const struct node *n)
{
	for (int k = 0; k < n->min && !c->err; k++)
		emit(c, n->l);
	if (n->max == NO_LIMIT) {
		emit_star(c, n->l);
		return;
	}
	for (int k = n->min; k < n->max && !c->err; k++) {
		uint32_t split = put(c, REGEX_SPLIT, 0, 0);

		emit(c, n->l);
		patch(c, split, split + 1, c->ncode);
	}
}

static void emit_choice(struct compiler *c, const struct node *n)
{
	uint32_t split = put(c, REGEX_SPLIT, 0, 0), jmp;

	emit(c, n->l);
	jmp = put(c, REGEX_JMP, 0, 0);
	patch(c, split, split + 1, c->ncode);
	emit(c, n->r);
	patch(c, jmp, c->ncode, 0);
}

static void emit_set(struct compiler *c, const struct node *n)
{
	c->sets = arena_grow(c->arena, c->sets, &c->sets_cap, c->nsets, sizeof(*c->sets));
	memcpy(c->sets[c->nsets], n->set, sizeof(n->set));
	put(c, REGEX_SET, c->nsets++, 0);	/* the set's number; later replaced by its first word's index */
}

static void save(struct compiler *c, unsigned int slot)
{
	if (c->saves && slot < REGEX_SLOTS)
		put(c, REGEX_SAVE, slot, 0);
}

static void emit(struct compiler *c, const struct node *n)
{
	if (c->err)
		return;
	switch (n->kind) {
	case EMPTY:
		break;
	case CHAR:
		put(c, REGEX_CHAR, n->byte, 0);
		break;
	case ANY:
		put(c, REGEX_ANY, 0, 0);
		break;
	case SET:
		emit_set(c, n);
		break;
	case BEGIN:
		put(c, REGEX_BEGIN, 0, 0);
		break;
	case END:
		put(c, REGEX_END, 0, 0);
		break;
	case SEQUENCE:
		emit(c, n->l);
		emit(c, n->r);
		break;
	case CHOICE:
		emit_choice(c, n);
		break;
	case REPEAT:
		emit_repeat(c, n);
		break;
	case GROUP:
		save(c, 2 * n->group);
		emit(c, n->l);
		save(c, 2 * n->group + 1);
		break;
	}
}

/* Do all matches of @n start at the string's start? */
static bool is_anchored(const struct node *n)
{
	switch (n->kind) {
	case BEGIN:
		return true;
	case SEQUENCE:
	case GROUP:
		return is_anchored(n->l);
	case CHOICE:
		return is_anchored(n->l) && is_anchored(n->r);
	case REPEAT:
		return n->min && is_anchored(n->l);
	default:
		return false;
	}
}

static bool nullable(const struct node *n)
{
	switch (n->kind) {
	case CHAR:
	case ANY:
	case SET:
		return false;
	case SEQUENCE:
		return nullable(n->l) && nullable(n->r);
	case CHOICE:
		return nullable(n->l) || nullable(n->r);
	case REPEAT:
		return !n->min || nullable(n->l);
	case GROUP:
		return nullable(n->l);
	default:
		return true;
	}
}

/* Add the first bytes of all nonempty matches of @n. */
static void add_first(const struct node *n, uint64_t set[4])
{
	switch (n->kind) {
	case CHAR:
		set[n->byte / 64] |= 1ull << n->byte % 64;
		break;
	case ANY:
		memset(set, 0xff, 4 * sizeof(*set));
		break;
	case SET:
		for (int k = 0; k < 4; k++)
			set[k] |= n->set[k];
		break;
	case SEQUENCE:
		add_first(n->l, set);
		if (nullable(n->l))
			add_first(n->r, set);
		break;
	case CHOICE:
		add_first(n->l, set);
		add_first(n->r, set);
		break;
	case REPEAT:
	case GROUP:
		add_first(n->l, set);
		break;
	default:
		break;
	}
}

/* The instruction that is reached from @at by following jumps. */
static uint32_t behind_jumps(const struct compiler *c, uint32_t at)
{
	for (uint32_t k = 0; k < c->ncode && (c->code[at] & 0xff) == REGEX_JMP; k++)
		at = c->code[at] >> 16 & 0xffff;
	return at;
}

/* For the complete code: set the next instruction of those that consume a byte, and let no split lead to a jump. */
static void thread(struct compiler *c)
{
	for (uint32_t k = 0; k < c->ncode; k++) {
		uint64_t op = c->code[k] & 0xff, x = c->code[k] >> 16 & 0xffff, y = c->code[k] >> 32;

		if (op == REGEX_CHAR || op == REGEX_ANY || op == REGEX_SET)
			patch(c, k, x, behind_jumps(c, k + 1));
		else if (op == REGEX_SPLIT)
			patch(c, k, behind_jumps(c, (uint32_t)x), behind_jumps(c, (uint32_t)y));
	}
}

/* Emit the code for the whole expression @n. */
static void emit_all(struct compiler *c, struct regex *re, const struct node *n)
{
	re->anchored = is_anchored(n);
	re->ngroups = c->groups + 1;
	if (c->saves)
		re->nslots = re->ngroups < REGEX_GROUPS ? 2 * re->ngroups : REGEX_SLOTS;
	save(c, 0);
	emit(c, n);
	save(c, 1);
	put(c, REGEX_MATCH, 0, 0);
	put(c, REGEX_FAIL, 0, 0);
	if (c->err)
		return;
	thread(c);
	if ((c->ncode + 1) * re->nslots > REGEX_MAX_ROWS)
		fail(c, "it is too long for so many groups");
}

struct regex *regex_compile(struct arena *a, const char *text, bool groups, const char **err)
{
	struct compiler *c = arena_new_of(a, struct compiler);
	struct regex *re = arena_new_of(a, struct regex);
	uint64_t first[4] = { 0 };
	struct node *n;

	c->arena = a;
	c->p = text;
	c->saves = groups;
	if (strlen(text) >= REGEX_MAX_CODE)
		fail(c, "it is too long");
	n = c->err ? NULL : choice(c);
	if (!c->err && *c->p)
		fail(c, ") without (");
	if (!c->err)
		emit_all(c, re, n);
	*err = c->err;
	if (c->err)
		return NULL;
	if (nullable(n))
		memset(first, 0xff, sizeof(first));
	add_first(n, first);
	re->ncode = c->ncode;
	re->nwords = c->ncode + 4 * c->nsets + 4;
	re->words = arena_alloc(a, re->nwords * sizeof(*re->words));
	for (uint32_t k = 0; k < c->ncode; k++) {
		re->words[k] = c->code[k];
		if ((c->code[k] & 0xff) == REGEX_SET)
			re->words[k] = REGEX_SET | (c->ncode + 4 * (c->code[k] >> 16 & 0xffff)) << 16 | c->code[k] >> 32 << 32;
	}
	for (uint32_t k = 0; k < c->nsets; k++)
		memcpy(&re->words[c->ncode + 4 * k], c->sets[k], sizeof(c->sets[k]));
	memcpy(&re->words[re->nwords - 4], first, sizeof(first));
	return re;
}
