/*
 * Any bytes as a program: what the check accepts must do the same interpreted and compiled, to r0, to memory, to
 * the stack and in the way it fails.
 *
 * The bytes are instructions, bent a little towards ones that exist: opcodes are taken from a list by the first
 * byte (0xff: as they are), registers and jumps are made small.  A prologue gives all registers values, since
 * few random programs do that by themselves.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vm/vm.h"

enum { MAX = 256, MEM = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t shapes[] = {
	0x07, 0x0f, 0x17, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x47, 0x4f, 0x57, 0x5f, 0x67, 0x6f, 0x77, 0x7f, 0x87, 0x97,
	0x9f, 0xa7, 0xaf, 0xb7, 0xbf, 0xc7, 0xcf, 0xd7, 0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c,
	0x54, 0x5c, 0x64, 0x6c, 0x74, 0x7c, 0x84, 0x94, 0x9c, 0xa4, 0xac, 0xb4, 0xbc, 0xc4, 0xcc, 0xd4, 0xdc,
	0x61, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91, 0x62, 0x6a, 0x72, 0x7a, 0x63, 0x6b, 0x73, 0x7b, 0xc3, 0xdb,
	0x05, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x55, 0x5d, 0x65, 0x6d, 0x75, 0x7d, 0xa5, 0xad, 0xb5,
	0xbd, 0xc5, 0xcd, 0xd5, 0xdd, 0x16, 0x1e, 0x26, 0x2e, 0x66, 0x6e, 0xa6, 0xae, 0xd6, 0xde,
};

static const int32_t atomics[] = { 0x00, 0x40, 0x50, 0xa0, 0x01, 0x41, 0x51, 0xa1, 0xe1, 0xf1 };

/* Clear the fields that must be 0 in most forms. */
static void bend(struct bpf_insn *i, uint8_t choice)
{
	uint8_t class;

	if (choice == 0xff)
		return;
	i->code = shapes[choice % sizeof(shapes)];
	i->dst_reg %= 11;
	i->src_reg %= 11;
	class = BPF_CLASS(i->code);
	if (class == BPF_ALU || class == BPF_ALU64 || class == BPF_JMP || class == BPF_JMP32) {
		if (BPF_SRC(i->code) == BPF_X)
			i->imm = 0;
		else
			i->src_reg = 0;
		i->off &= class == BPF_ALU || class == BPF_ALU64 ? 0 : 7;
	}
	if (BPF_OP(i->code) == BPF_END && (class == BPF_ALU || class == BPF_ALU64)) {
		i->imm = 16 << (choice & 1);
		i->src_reg = 0;
	}
	if (class == BPF_LDX || class == BPF_STX)
		i->imm = BPF_MODE(i->code) == BPF_ATOMIC ? atomics[(uint32_t)i->imm % 10] : 0;
	if (class == BPF_ST)
		i->src_reg = 0;
	if (class == BPF_LDX || class == BPF_STX || class == BPF_ST)
		i->off = (int16_t)(-(i->off & 63) - 8) * (choice & 1 ? 1 : -1);
}

static uint32_t build(struct bpf_insn *insns, const uint8_t *data, size_t size)
{
	uint32_t n = 0;

	insns[n++] = (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 6,
					.src_reg = BPF_PSEUDO_MAP_VALUE };
	insns[n++] = (struct bpf_insn){ 0 };
	insns[n++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 7, .src_reg = 10 };
	for (uint8_t k = 0; k < 10; k++) {
		if (k == 1 || k == 6 || k == 7)
			continue;
		insns[n++] = (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = k, .src_reg = 1,
						.off = (int16_t)(8 * k) };
	}
	for (; size >= 9 && n < MAX - 2; size -= 9, data += 9) {
		memcpy(&insns[n], data + 1, sizeof(*insns));
		bend(&insns[n++], data[0]);
	}
	for (uint32_t k = 0; k < 2; k++)
		insns[n++] = (struct bpf_insn){ .code = BPF_JMP | (k ? BPF_EXIT : BPF_JA) };
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t mem[MEM] __attribute__((aligned(8)));
	static struct vm_thread thread;
	uint64_t ctx[12], ret[2] = { 0 };
	struct bpf_insn insns[MAX];
	struct vm_map map = { .handle = mem, .base = mem, .size = MEM, .key_size = 4, .value_size = MEM };
	struct vm_spec spec = { .insns = insns, .ninsns = build(insns, data, size), .maps = &map, .nmaps = 1,
				.ctx_size = sizeof(ctx), .ctx_writable = true };
	uint8_t memory[2][MEM], stack[2][VM_STACK];
	struct vm_error why;
	struct vm_prog *p;
	uint32_t fault[2];
	int err[2];

	if (vm_load(&spec, &p, &why))
		return 0;
	if (vm_compile(p) == -EINVAL)
		__builtin_trap();
	for (int k = 0; k < 2; k++) {
		memset(mem, 0x5a, sizeof(mem));
		memset(&thread, 0, sizeof(thread));
		for (uint64_t w = 0; w < 12; w++)
			ctx[w] = w * 0x9e3779b97f4a7c15u >> (w * 5);
		err[k] = (k ? vm_run : vm_interpret)(p, &thread, ctx, &ret[k]);
		fault[k] = thread.fault_insn;
		memcpy(memory[k], mem, MEM);
		memcpy(stack[k], thread.stack, VM_STACK);
	}
	if (err[0] != err[1] || ret[0] != ret[1] || fault[0] != fault[1] || memcmp(memory[0], memory[1], MEM) ||
	    memcmp(stack[0], stack[1], VM_STACK))
		__builtin_trap();
	vm_free(p);
	return 0;
}
