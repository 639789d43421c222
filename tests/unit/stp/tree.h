/* What the tests of the front end share: a script compiled, and its tree as text. */
#ifndef TESTS_UNIT_STP_TREE_H
#define TESTS_UNIT_STP_TREE_H

#include "base/arena.h"
#include "base/strbuf.h"
#include "lang/diag.h"
#include "stp/stp.h"

struct compiled {
	struct arena *arena;
	struct diag diag;
	struct stp_env env;
	struct stp *stp;
	struct stp_prog *prog;		/* NULL: mistakes */
	struct strbuf text;		/* stp_dump of the parsed tree, or the first message */
};

/* Parse @script with the arguments @args (NULL at the end; or NULL). */
void parse(struct compiled *c, const char *script, const char *const *args);

/* The same, and check it. */
void check(struct compiled *c, const char *script, const struct stp_resolver *resolver);

void compiled_fini(struct compiled *c);

/* The @i-th message of @level, or "". */
const char *message(const struct compiled *c, enum diag_level level, size_t i);

#endif
