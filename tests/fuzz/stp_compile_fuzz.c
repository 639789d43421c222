/*
 * SystemTap scripts through the whole compilation, to eBPF: nothing may crash, what is refused says so, and what is
 * lowered is well formed.  Markers have three arguments; everything exists.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "bpf/ebpf.h"
#include "lang/diag.h"
#include "lib/stp_env.h"
#include "stp/stp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t find(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
		   const struct stp_point ***found, const char **why)
{
	(void)ctx;
	(void)point;
	(void)kind;
	(void)found;
	(void)why;
	return 1;
}

static bool find_target(void *ctx, const struct stp_point *point, enum stp_point_kind kind,
			const struct stp_node *target, struct stp_source *source, const char **why)
{
	int n = !strncmp(target->name, "$arg", 4) ? atoi(target->name + 4) : 0;

	(void)ctx;
	(void)point;
	(void)kind;
	(void)why;
	source->arg = n > 0 ? (uint32_t)n - 1 : 0;
	return n > 0 && n <= 3;
}

static void compile(const struct ir_prog *p)
{
	struct ebpf_sizes sizes = { .bufsize = 4096, .aggsize = 4096, .dynvarsize = 4096, .nprobes = 1 };
	struct ebpf_env env = { .ctx = EBPF_CTX_UPROBE, .sleepable = true, .nargs = 1,
				.args = { { .loc = EBPF_LOC_REG, .width = 8 } } };
	const char *err;
	struct ebpf_unit *u = ebpf_unit_new(p, &sizes, &err);

	for (uint32_t i = 0; u && i < p->nclauses; i++)
		if (!ebpf_compile(u, &env, &p->clauses[i], 1, NULL, 0, &err) && !err)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct stp_resolver resolver = { .find = find, .target = find_target };
	struct arena *a = arena_new();
	struct stp_prog *prog = NULL;
	struct stp_code *code = NULL;
	struct stp_env env;
	struct diag diag;
	struct stp *stp;

	if (!a)
		return 0;
	diag_init(&diag, a);
	stp_env_init(&env, a);
	stp = stp_new(a, &diag, &env);
	if (stp_add(stp, source_text(a, "fuzz.stp", (const char *)data, size), false))
		prog = stp_check(stp, &resolver);
	if (prog)
		code = stp_compile(stp, prog);
	if (!code != !!diag.errors)		/* a program or a report, never both, never neither */
		abort();
	if (code && ir_check(code->prog))
		abort();
	if (code)
		compile(code->prog);
	arena_free(a);
	return 0;
}
