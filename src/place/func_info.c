#include "place/func_info.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

static bool is_callback(const struct bpf_insn *i)
{
	return i->code == (BPF_LD | BPF_IMM | BPF_DW) && i->src_reg == BPF_PSEUDO_FUNC;
}

static bool is_call(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL;
}

/* Mark where subprograms start; does any serve as a callback? */
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

/* A BTF object with one function, "static int dtap(void)", as type 3. */
static int load_btf(void)
{
	struct btf *btf = btf__new_empty();
	const void *raw;
	uint32_t size;
	int fd = -ENOMEM;

	if (!btf)
		return -ENOMEM;
	if (btf__add_int(btf, "int", 4, BTF_INT_SIGNED) == 1 && btf__add_func_proto(btf, 1) == 2 &&
	    btf__add_func(btf, "dtap", BTF_FUNC_STATIC, 2) == 3) {
		raw = btf__raw_data(btf, &size);
		if (raw) {
			fd = bpf_btf_load(raw, size, NULL);
			if (fd < 0)
				fd = -errno;
		}
	}
	btf__free(btf);
	return fd;
}

int func_info_make(const struct bpf_insn *insns, uint32_t n, struct func_info *ret)
{
	bool *starts = calloc(n, sizeof(*starts));
	uint32_t i;
	int e = 0;

	memset(ret, 0, sizeof(*ret));
	ret->btf_fd = -1;
	if (!starts)
		return -ENOMEM;
	if (!find_starts(insns, n, starts))
		goto out;
	ret->v = calloc(n, sizeof(*ret->v));
	if (!ret->v) {
		e = -ENOMEM;
		goto out;
	}
	for (i = 0; i < n; i++)
		if (starts[i])
			ret->v[ret->n++] = (struct bpf_func_info){ .insn_off = i, .type_id = 3 };
	ret->btf_fd = load_btf();
	if (ret->btf_fd < 0) {
		e = ret->btf_fd;
		func_info_fini(ret);
	}
out:
	free(starts);
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
