/* Any bytes as a D program: parsed as a file and as -n and -P have it, the tree printed, constants computed. */
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "d/parse.h"
#include "lang/diag.h"
#include "lang/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit_block(const struct d_prog *p, const struct d_block *b)
{
	int64_t value;

	for (size_t i = 0; i < b->n; i++) {
		d_const(p, b->stmts[i]->expr, &value);
		if (b->stmts[i]->yes)
			visit_block(p, b->stmts[i]->yes);
		if (b->stmts[i]->no)
			visit_block(p, b->stmts[i]->no);
	}
}

static void parse(const uint8_t *data, size_t size, enum d_spec spec)
{
	static const char *const argv[] = { "script.d", "1", "name", "a string" };
	struct arena *a = arena_new();
	struct strbuf out = { 0 };
	struct d_macros macros;
	struct d_prog *prog;
	struct diag diag;
	bool ok;

	if (!a)
		return;
	d_macros_init(&macros);
	macros.argv = argv;
	macros.argc = 4;
	macros.target = 1234;
	diag_init(&diag, a);
	prog = d_prog_new(a, &diag, &macros);
	ok = d_parse(prog, source_text(a, "fuzz", (const char *)data, size), spec);
	if (ok != !diag.errors || (!ok && !diag.n))
		__builtin_trap();
	for (size_t i = 0; i < diag.n; i++) {
		if (!diag.msgs[i].pos.src || !diag.msgs[i].tag || !*diag.msgs[i].text)
			__builtin_trap();
		diag_excerpt(&out, diag.msgs[i].pos);
	}
	if (ok) {
		d_dump(&out, prog);
		for (size_t i = 0; i < prog->nitems; i++)
			if (prog->items[i].kind == D_ITEM_CLAUSE && prog->items[i].clause->body)
				visit_block(prog, prog->items[i].clause->body);
	}
	strbuf_fini(&out);
	arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse(data, size, D_SPEC_FILE);
	parse(data, size, D_SPEC_NAME);
	parse(data, size, D_SPEC_PROV);
	return 0;
}
