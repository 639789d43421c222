#include "probe/ktypes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

static const char prefix[] = "btf_trace_";

struct ktypes *ktypes_new(void)
{
	return (struct ktypes *)btf__load_vmlinux_btf();
}

void ktypes_free(struct ktypes *k)
{
	btf__free((struct btf *)k);
}

static const struct btf *btf_of(const struct ktypes *k)
{
	return (const struct btf *)k;
}

const struct btf *ktypes_btf(const struct ktypes *k)
{
	return btf_of(k);
}

void ktypes_each(const struct ktypes *k, void (*fn)(void *ctx, const char *tracepoint), void *ctx)
{
	const struct btf *btf = btf_of(k);
	uint32_t n = btf__type_cnt(btf);

	for (uint32_t id = 1; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name;

		if (!btf_is_typedef(t))
			continue;
		name = btf__name_by_offset(btf, t->name_off);
		if (name && !strncmp(name, prefix, sizeof(prefix) - 1))
			fn(ctx, name + sizeof(prefix) - 1);
	}
}

/* The type @id without names and qualifiers, or NULL. */
static const struct btf_type *bare(const struct btf *btf, uint32_t id)
{
	int32_t to = btf__resolve_type(btf, id);

	return to > 0 ? btf__type_by_id(btf, (uint32_t)to) : NULL;
}

/* The size and sign for reading an integer, enum or pointer of type @id. */
static bool scalar(const struct btf *btf, uint32_t id, uint8_t *size, bool *sign)
{
	const struct btf_type *t = bare(btf, id);

	if (!t)
		return false;
	*sign = btf_is_int(t) && (btf_int_encoding(t) & BTF_INT_SIGNED);
	if (btf_is_ptr(t)) {
		*size = 8;
		return true;
	}
	if ((!btf_is_int(t) && !btf_is_any_enum(t)) || t->size > 8)
		return false;
	*size = (uint8_t)t->size;
	return true;
}

/* The parameters of tracepoint @name; *n: their number without the first, which is not an argument. */
static const struct btf_param *params(const struct btf *btf, const char *name, unsigned int *n)
{
	const struct btf_type *t;
	char full[160];
	int id;

	if (strlen(name) >= sizeof(full) - sizeof(prefix))
		return NULL;
	strcpy(full, prefix);
	strcat(full, name);
	id = btf__find_by_name_kind(btf, full, BTF_KIND_TYPEDEF);
	t = id > 0 ? bare(btf, (uint32_t)id) : NULL;
	t = t && btf_is_ptr(t) ? bare(btf, t->type) : NULL;
	if (!t || !btf_is_func_proto(t) || !btf_vlen(t))
		return NULL;
	*n = btf_vlen(t) - 1u;
	return btf_params(t) + 1;
}

int ktypes_args(const struct ktypes *k, const char *name, struct probe_sig *sig)
{
	const struct btf *btf = btf_of(k);
	const struct btf_param *p;
	unsigned int n = 0;

	p = params(btf, name, &n);
	if (!p)
		return -1;
	if (n > EBPF_TP_ARGS)
		n = EBPF_TP_ARGS;
	for (unsigned int i = 0; sig && i < n; i++) {
		sig->args[i] = (struct probe_arg){ .size = 8 };
		scalar(btf, p[i].type, &sig->args[i].size, &sig->args[i].sign);
		sig->args[i].kernel = true;
	}
	if (sig)
		sig->nargs = n;
	return (int)n;
}

/* Write the type @id in C; false: it has no short form. */
static bool type_text(const struct btf *btf, uint32_t id, char *buf, size_t size)
{
	const struct btf_type *t = btf__type_by_id(btf, id);
	const char *name = t ? btf__name_by_offset(btf, t->name_off) : "";
	size_t n;

	if (!id)
		return snprintf(buf, size, "void") < (int)size;
	if (!t)
		return false;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return *name && snprintf(buf, size, "%s", name) < (int)size;
	case BTF_KIND_TYPEDEF:	/* scripts have bool, too */
		return snprintf(buf, size, "%s%s", strcmp(name, "bool") ? "vmlinux`" : "", name) < (int)size;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_FWD:
		return *name && snprintf(buf, size, "%s %s", btf_is_enum(t) ? "enum" : btf_is_union(t) ? "union" : "struct",
					 name) < (int)size;
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return type_text(btf, t->type, buf, size);
	case BTF_KIND_PTR:
		if (!type_text(btf, t->type, buf, size))
			return false;
		n = strlen(buf);
		return snprintf(buf + n, size - n, "%s*", buf[n - 1] == '*' ? "" : " ") < (int)(size - n);
	default:
		return false;
	}
}

bool ktypes_arg_text(const struct ktypes *k, const char *name, unsigned int i, char *buf, size_t size)
{
	unsigned int n = 0;
	const struct btf_param *p = params(btf_of(k), name, &n);

	return p && i < n && type_text(btf_of(k), p[i].type, buf, size);
}

/* --- members ------------------------------------------------------------------------------------------ */

/* The type of member @name of @t, also in anonymous members; 0: there is none.  Adds its offset to *bits. */
static uint32_t find_member(const struct btf *btf, const struct btf_type *t, const char *name, size_t len,
			    uint32_t *bits)
{
	const struct btf_member *m = btf_members(t);

	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		const char *is = btf__name_by_offset(btf, m[i].name_off);
		uint32_t at = *bits + btf_member_bit_offset(t, i), found;
		const struct btf_type *inner;

		if (*is) {
			if (strncmp(is, name, len) || is[len] || btf_member_bitfield_size(t, i))
				continue;
			*bits = at;
			return m[i].type;
		}
		inner = bare(btf, m[i].type);
		if (!inner || !btf_is_composite(inner))
			continue;
		found = find_member(btf, inner, name, len, &at);
		if (found) {
			*bits = at;
			return found;
		}
	}
	return 0;
}

bool ktypes_member(const struct ktypes *k, const char *path, uint32_t *off, uint8_t *size, bool *sign)
{
	const struct btf *btf = btf_of(k);
	size_t len = strcspn(path, ".:");
	uint32_t bits = 0, type;
	char name[64];
	int id;

	if (len >= sizeof(name))
		return false;
	memcpy(name, path, len);
	name[len] = '\0';
	id = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
	if (id <= 0)
		return false;
	type = (uint32_t)id;
	for (path += len; *path == '.'; path += len) {
		const struct btf_type *t = bare(btf, type);

		path++;
		len = strcspn(path, ".:");
		if (!t || !btf_is_composite(t))
			return false;
		type = find_member(btf, t, path, len, &bits);
		if (!type)
			return false;
	}
	*off = bits / 8;
	return scalar(btf, type, size, sign);
}

bool ktypes_value(const struct ktypes *k, const char *name, const char *text, struct ebpf_tp_value *v)
{
	bool is_signal = !strncmp(text, "signal ", 7);
	const struct btf_param *p;
	unsigned int n = 0;
	char *end;

	text += is_signal ? 7 : 0;
	memset(v, 0, sizeof(*v));
	v->kind = EBPF_TP_VALUE;
	if (!strncmp(text, "errno ", 6)) {
		v->kind = EBPF_TP_ERRNO;
		text += 6;
	} else if (!strncmp(text, "reason ", 7)) {
		v->kind = EBPF_TP_EXIT_REASON;
		text += 7;
	}
	v->word = (uint8_t)strtoul(text, &end, 10);
	p = params(btf_of(k), name, &n);
	if (!strncmp(text, "current", 7)) {
		v->kind = is_signal ? EBPF_TP_SIGNAL : EBPF_TP_CURRENT;
		v->width = 8;
		end = (char *)text + 7;
	} else if (!p || v->word >= n || !scalar(btf_of(k), p[v->word].type, &v->width, &v->sign))
		return false;
	for (; *end == ':'; end += strcspn(end, ":")) {
		end++;
		if (v->derefs == EBPF_TP_DEREFS || !ktypes_member(k, end, &v->off[v->derefs++], &v->width, &v->sign))
			return false;
	}
	return true;
}

/* --- by name ------------------------------------------------------------------------------------------ */

const char *ktypes_arg_name(const struct ktypes *k, const char *name, unsigned int i)
{
	/* The type has no names for the parameters, but the function that the kernel calls at the tracepoint does. */
	static const char caller[] = "__traceiter_";
	const struct btf *btf = btf_of(k);
	const struct btf_type *t;
	char full[160];
	int id;

	if (strlen(name) >= sizeof(full) - sizeof(caller))
		return NULL;
	strcpy(full, caller);
	strcat(full, name);
	id = btf__find_by_name_kind(btf, full, BTF_KIND_FUNC);
	t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	if (!t || !btf_is_func_proto(t) || i + 1 >= btf_vlen(t))
		return NULL;
	return btf__name_by_offset(btf, btf_params(t)[i + 1].name_off);
}

static bool is_text(const struct btf *btf, const struct btf_type *t)
{
	const struct btf_type *of = t && btf_is_array(t) ? bare(btf, btf_array(t)->type) : NULL;

	return of && btf_is_int(of) && of->size == 1;
}

uint32_t ktypes_arg_type(const struct ktypes *k, const char *name, unsigned int i)
{
	unsigned int n = 0;
	const struct btf_param *p = params(btf_of(k), name, &n);

	return p && i < n ? p[i].type : 0;
}

uint32_t ktypes_find(const struct ktypes *k, const char *name)
{
	static const struct {
		const char *word;
		uint32_t kind;
	} kinds[] = {
		{ "struct ", BTF_KIND_STRUCT }, { "union ", BTF_KIND_UNION }, { "", BTF_KIND_TYPEDEF }, { "", BTF_KIND_STRUCT },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].word);
		int id = strncmp(name, kinds[i].word, len) ? 0 : btf__find_by_name_kind(btf_of(k), name + len, kinds[i].kind);

		if (id > 0)
			return (uint32_t)id;
	}
	return 0;
}

/* The structure that a value of type @t points to, or 0. */
static uint32_t pointed(const struct btf *btf, const struct btf_type *t)
{
	const struct btf_type *to = t && btf_is_ptr(t) ? bare(btf, t->type) : NULL;

	return to && btf_is_composite(to) ? t->type : 0;
}

/* A path under construction: the complete steps, and the offset after the last one. */
struct path {
	struct ktypes_step *steps;
	unsigned int n, max;
	struct ktypes_step next;	/* incomplete; its offset is in bits */
	uint32_t bits;
};

static bool take_step(struct path *p, uint8_t width, bool sign)
{
	if (p->n == p->max)
		return false;
	p->next.off = p->bits / 8;
	p->next.width = width;
	p->next.sign = sign;
	p->steps[p->n++] = p->next;
	p->next = (struct ktypes_step){ 0 };
	p->bits = 0;
	return true;
}

/* Step to an element, whose index is name number @m.  Returns its type; 0: none. */
static uint32_t walk_element(const struct btf *btf, uint32_t type, size_t m, struct path *p)
{
	const struct btf_type *t = bare(btf, type);
	int64_t size;

	if (t && btf_is_ptr(t)) {
		if (m && !take_step(p, 8, false))
			return 0;
		type = t->type;
	} else if (t && btf_is_array(t)) {
		type = btf_array(t)->type;
	} else if (m) {
		return 0;
	}
	size = btf__resolve_size(btf, type);
	if (size <= 0 || (p->next.element && !take_step(p, 0, false)))
		return 0;
	p->next.element = (unsigned int)m + 1;
	p->next.scale = (uint32_t)size;
	return type;
}

static uint32_t walk_member(const struct btf *btf, uint32_t type, const char *name, size_t m, struct path *p)
{
	const struct btf_type *t = bare(btf, type);

	if (t && btf_is_ptr(t)) {
		if (m && !take_step(p, 8, false))	/* follow a pointer in a member */
			return 0;
		t = bare(btf, t->type);
	}
	return t && btf_is_composite(t) ? find_member(btf, t, name, strlen(name), &p->bits) : 0;
}

int ktypes_walk(const struct ktypes *k, uint32_t type, const char *const *names, size_t n, struct ktypes_step *steps,
		unsigned int max, bool *string, uint32_t *target)
{
	const struct btf *btf = btf_of(k);
	struct path p = { .steps = steps, .max = max };
	const struct btf_type *t;
	uint8_t width = 0;
	bool sign = false;

	*string = false;
	for (size_t m = 0; m < n && type; m++)
		type = names[m] ? walk_member(btf, type, names[m], m, &p) : walk_element(btf, type, m, &p);
	t = type ? bare(btf, type) : NULL;
	if (n && !t)
		return -1;
	*target = pointed(btf, t);
	if (!n)
		return 0;
	if (is_text(btf, t))
		*string = true;
	else if (!btf_is_array(t) && !btf_is_composite(t) && !scalar(btf, type, &width, &sign))
		return -1;
	if (!take_step(&p, width, sign))
		return -1;
	if (btf_is_composite(t))	/* its address is the value */
		*target = type;
	return (int)p.n;
}
