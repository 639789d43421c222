/*
 * SystemTap scripts, whole and damaged, through the front end: nothing may crash, and what passes has types.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "lib/stp_env.h"
#include "stp/stp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const args[] = { "1", "two $1", "@1 $2" };
	struct arena *a = arena_new();
	struct stp_env env;
	struct diag diag;
	struct strbuf b = {0};
	struct stp *stp;

	if (!a)
		return 0;
	diag_init(&diag, a);
	stp_env_init(&env, a);
	env.args.v = args;
	env.args.n = 3;
	stp = stp_new(a, &diag, &env);
	if (stp_add(stp, source_text(a, "fuzz.stp", (const char *)data, size), false)) {
		stp_dump(&b, stp_tree(stp));
		if (!stp_check(stp, NULL) && !diag.errors)
			abort();
	}
	strbuf_fini(&b);
	arena_free(a);
	return 0;
}
