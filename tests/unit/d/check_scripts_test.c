/* The checker's verdict on each script of tests/d/check; what passes is lowered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compile.h"
#include "scripts.h"

static void check(struct arena *a, const struct source *src, struct diag *diag)
{
	struct ir_prog *prog = compile_source(a, src, diag, NULL);

	assert_int_equal(!prog, !!diag->errors);
}

int main(int argc, char **argv)
{
	return scripts_main(argc, argv, check);
}
