/*
 * What the runner of tests/vm asks the kernel for, in a process of qemu-user's, which has no bpf(2): nothing is there.
 */
#include <bpf/bpf.h>
#include <errno.h>

#include "place/func_info.h"

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key_size, __u32 value_size, __u32 max,
		   const struct bpf_map_create_opts *opts)
{
	(void)type, (void)name, (void)key_size, (void)value_size, (void)max, (void)opts;
	return -ENOSYS;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	(void)fd, (void)key, (void)value, (void)flags;
	return -ENOSYS;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)fd, (void)key, (void)value;
	return -ENOSYS;
}

int bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *insns, size_t n,
		  const struct bpf_prog_load_opts *opts)
{
	(void)type, (void)name, (void)license, (void)insns, (void)n, (void)opts;
	return -ENOSYS;
}

int bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *opts)
{
	(void)fd, (void)opts;
	return -ENOSYS;
}

int func_info_make(const struct bpf_insn *insns, uint32_t n, const struct ebpf_func *globals, uint32_t nglobals,
		   struct func_info *ret)
{
	(void)insns, (void)n, (void)globals, (void)nglobals, (void)ret;
	return -ENOSYS;
}

void func_info_fini(struct func_info *f)
{
	(void)f;
}
