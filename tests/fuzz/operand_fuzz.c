/* Any text as a marker's argument string, for each machine. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct arch *arch, const char *args)
{
	struct arch_operand ops[12];
	unsigned int n = arch_operands(arch, args, ops, 12);

	for (unsigned int i = 0; i < n && i < 12; i++) {
		const struct arch_operand *op = &ops[i];

		if (!op->size || (op->sym && (op->sym < args || op->sym + op->sym_len > args + strlen(args))))
			__builtin_trap();
		if (op->why)
			continue;
		if (op->loc == ARCH_LOC_NONE || op->size > 8 || (op->loc == ARCH_LOC_REG) > !!op->reg ||
		    (op->reg && op->reg->off > 272) || (op->index && (op->scale & (op->scale - 1))))
			__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *args = malloc(size + 1);

	if (!args)
		return 0;
	memcpy(args, data, size);
	args[size] = '\0';
	check(&arch_x86_64, args);
	check(&arch_aarch64, args);
	check(NULL, args);
	free(args);
	return 0;
}
