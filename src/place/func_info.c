#include "place/func_info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "bpf/ebpf.h"

static bool is_callback(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW) && i->src_reg == BPF_PSEUDO_FUNC;
}

static bool is_call(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL;
}

/* Mark where subprograms start.  True: at least one is a callback. */
static bool find_starts(const struct bpf_insn *insns, uint32_t n, bool *starts)
{
	bool callbacks = false;
	uint32_t i;
	int64_t to;

	starts[0] = true;
	for (i = 0; i < n; i++) {
		if (!is_callback(&insns[i]) && !is_call(&insns[i]))
			continue;
		callbacks |= is_callback(&insns[i]);
		to = (int64_t)i + 1 + insns[i].imm;
		if (to >= 0 && to < n)
			starts[to] = true;
	}
	return callbacks;
}

/* BTF type ids; the first three exist for all programs, the others for those with global functions. */
enum { TYPE_INT = 1, TYPE_STATIC_PROTO, TYPE_STATIC, TYPE_NUMBER, TYPE_BYTE, TYPE_ANY, TYPE_INDEX };

/* The BTF type of @p, or a negative errno. */
static int add_param(struct btf *btf, const struct ebpf_param *p)
{
	int id;

	switch (p->kind) {
	case EBPF_PARAM_ANY:
		return TYPE_ANY;
	case EBPF_PARAM_MEMORY:
		id = btf__add_array(btf, TYPE_INDEX, TYPE_BYTE, p->size);
		return id < 0 ? id : btf__add_ptr(btf, id);
	default:
		return TYPE_NUMBER;
	}
}

/* Add the global function @f.  Returns its id, or a negative errno. */
static int add_global(struct btf *btf, const struct ebpf_func *f)
{
	int types[EBPF_PARAMS], proto, id, e = 0;
	unsigned int k;
	char name[8];

	for (k = 0; k < f->nparams; k++) {
		types[k] = add_param(btf, &f->params[k]);
		if (types[k] < 0)
			return types[k];
	}
	proto = btf__add_func_proto(btf, TYPE_NUMBER);
	for (k = 0; k < f->nparams && !e; k++) {
		snprintf(name, sizeof(name), "a%u", k);
		e = btf__add_func_param(btf, name, types[k]);
	}
	id = proto < 0 || e ? -ENOMEM : btf__add_func(btf, f->name, BTF_FUNC_GLOBAL, proto);
	for (k = 0; k < f->nparams && id >= 0; k++) {
		static const char *const tags[] = { [EBPF_PARAM_ANY] = "arg:untrusted",
						    [EBPF_PARAM_MEMORY] = "arg:nonnull" };

		if (f->params[k].kind != EBPF_PARAM_NUMBER &&
		    btf__add_decl_tag(btf, tags[f->params[k].kind], id, (int)k) < 0)
			return -ENOMEM;
	}
	return id;
}

/* Load a BTF object with "static int dtap(void)" and the @n functions at @globals, whose ids are stored in @ids. */
static int load_btf(const struct ebpf_func *globals, uint32_t n, int *ids)
{
	struct btf *btf = btf__new_empty();
	const void *raw;
	uint32_t size;
	int fd = -ENOMEM;

	if (!btf)
		return -ENOMEM;
	if (btf__add_int(btf, "int", 4, BTF_INT_SIGNED) != TYPE_INT || btf__add_func_proto(btf, TYPE_INT) < 0 ||
	    btf__add_func(btf, "dtap", BTF_FUNC_STATIC, TYPE_STATIC_PROTO) != TYPE_STATIC)
		goto out;
	if (n && (btf__add_int(btf, "number", 8, 0) != TYPE_NUMBER || btf__add_int(btf, "byte", 1, 0) != TYPE_BYTE ||
		  btf__add_ptr(btf, TYPE_BYTE) != TYPE_ANY || btf__add_int(btf, "index", 4, 0) != TYPE_INDEX))
		goto out;
	for (uint32_t k = 0; k < n; k++) {
		ids[k] = add_global(btf, &globals[k]);
		if (ids[k] < 0)
			goto out;
	}
	raw = btf__raw_data(btf, &size);
	if (raw) {
		fd = bpf_btf_load(raw, size, NULL);
		if (fd < 0)
			fd = -errno;
	}
out:
	btf__free(btf);
	return fd;
}

int func_info_make(const struct bpf_insn *insns, uint32_t n, const struct ebpf_func *globals, uint32_t nglobals,
		   struct func_info *ret)
{
	bool *starts = calloc(n, sizeof(*starts));
	int *ids = calloc(nglobals + 1, sizeof(*ids));
	uint32_t i, global = 0;
	int e = -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	ret->btf_fd = -1;
	if (!starts || !ids)
		goto out;
	e = 0;
	if (!find_starts(insns, n, starts) && !nglobals)
		goto out;
	e = -ENOMEM;
	ret->v = calloc(n, sizeof(*ret->v));
	if (!ret->v)
		goto out;
	e = ret->btf_fd = load_btf(globals, nglobals, ids);
	if (e < 0) {
		func_info_fini(ret);
		goto out;
	}
	e = 0;
	for (i = 0; i < n; i++) {
		if (!starts[i])
			continue;
		ret->v[ret->n] = (struct bpf_func_info){ .insn_off = i, .type_id = TYPE_STATIC };
		if (global < nglobals && globals[global].insn == i)
			ret->v[ret->n].type_id = (uint32_t)ids[global++];
		ret->n++;
	}
out:
	free(starts);
	free(ids);
	return e;
}

void func_info_fini(struct func_info *f)
{
	if (f->btf_fd >= 0)
		close(f->btf_fd);
	free(f->v);
	memset(f, 0, sizeof(*f));
	f->btf_fd = -1;
}
