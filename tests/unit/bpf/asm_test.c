/* Jumps over many instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "bpf/asm.h"

/* The distance that the jump at @i has; of a long one it is in the immediate. */
static int64_t distance(const struct bpf_insn *i)
{
	return i->code == (BPF_JMP32 | BPF_JA) ? i->imm : i->off;
}

/*
 * In a long program each jump reaches its target, and those with 16 bits leave room for what the kernel puts in the
 * place of single instructions between (bpf_patch_insn_data() of the kernel refuses what does not fit).
 */
static void leaves_room(void **state)
{
	enum { BETWEEN = 20000, MOST = 16384 };
	struct arena *arena = arena_new();
	struct assembler a = { .arena = arena };
	uint32_t over = asm_label(&a), back = asm_label(&a);

	(void)state;
	asm_bind(&a, back);
	asm_ji(&a, BPF_JEQ, R1, 7, over);
	for (int n = 0; n < BETWEEN; n++)
		asm_imm(&a, R0, 1);
	asm_bind(&a, over);
	for (int n = 0; n < BETWEEN; n++)
		asm_imm(&a, R0, 2);
	asm_ja(&a, back);
	asm_exit(&a);
	asm_finish(&a);
	for (uint32_t k = 0; k < a.n; k++) {
		const struct bpf_insn *i = &a.insns[k];

		if (i->code == (BPF_JMP32 | BPF_JA)) {
			uint32_t to = (uint32_t)(k + 1 + distance(i));

			assert_true(to == 0 || (a.insns[to].imm == 2 && a.insns[to - 1].imm == 1));
		} else if (BPF_CLASS(i->code) == BPF_JMP && BPF_OP(i->code) != BPF_EXIT) {
			assert_in_range(distance(i) + MOST, 0, 2 * MOST);
		}
	}
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(leaves_room) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
