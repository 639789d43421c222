/* The parser's verdict on each script of tests/d/parse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "d/parse.h"
#include "lang/diag.h"
#include "scripts.h"

static void parse(struct arena *a, const struct source *src, struct diag *diag)
{
	struct strbuf text = { 0 };
	struct d_macros macros;
	struct d_prog *prog;
	bool ok;

	d_macros_init(&macros);
	prog = d_prog_new(a, diag, &macros);
	ok = d_parse(prog, src, D_SPEC_FILE);
	assert_int_equal(ok, !diag->errors);
	if (ok)
		d_dump(&text, prog);
	strbuf_fini(&text);
}

int main(int argc, char **argv)
{
	return scripts_main(argc, argv, parse);
}
