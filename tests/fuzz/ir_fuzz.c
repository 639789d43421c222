/*
 * IR text through the reader, the checker, the printer and the code generator.  What was read and is well formed must
 * print to a text that reads as the same program, and compile or be refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "bpf/ebpf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compile(struct ir_prog *p)
{
	struct ebpf_sizes sizes = { .bufsize = 4096, .aggsize = 4096, .dynvarsize = 4096, .nprobes = 1 };
	struct ebpf_env env = { .ctx = EBPF_CTX_UPROBE, .sleepable = true, .nargs = 1,
				.args = { { .loc = EBPF_LOC_REG, .width = 8 } } };
	struct strbuf text = { 0 };
	const char *err;
	struct ebpf_unit *u = ebpf_unit_new(p, &sizes, &err);
	struct ebpf_prog *prog;

	if (!u || !p->nclauses)
		return;
	prog = ebpf_compile(u, &env, p->clauses, p->nclauses, p->clauses, 1, &err);
	if (prog)
		ebpf_disasm(prog, &text);
	strbuf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct strbuf one = { 0 }, two = { 0 };
	struct ir_prog *p, *again;
	const char *err;

	if (!a)
		return 0;
	p = ir_read(a, arena_strndup(a, (const char *)data, size), &err);
	if (p && !ir_check(p)) {
		ir_print(p, &one);
		again = ir_read(a, strbuf_str(&one), &err);
		if (!again || ir_check(again))
			abort();
		ir_print(again, &two);
		if (strcmp(strbuf_str(&one), strbuf_str(&two)))
			abort();
		compile(p);
	}
	strbuf_fini(&one);
	strbuf_fini(&two);
	arena_free(a);
	return 0;
}
