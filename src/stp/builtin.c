#include "stp/sem.h"

#include <string.h>

#include "abi/segment.h"
#include "ir/ir.h"
#include "lang/words.h"
#include "stp/lower_func.h"

enum { NBUILTINS = 0
#define STP_FUNC(name, proto, effect, ...) + 1
#include "stp/functions.def"
#undef STP_FUNC
#define WORDS(name, ...) + 1
#include "lang/words.def"
#undef WORDS
};

#define TYPE(c) ((c) == 'l' ? STP_LONG : (c) == 's' ? STP_STRINGS : STP_UNKNOWN)
#define PURE true
#define ACTS false
#define BUILTIN(x) STP_BY_BUILTIN, IR_B_##x
#define RUNTIME(x) STP_BY_RUNTIME, IR_FN_##x
#define CODE(x) STP_BY_CODE, 0, stp_func_##x
#define WITH(x, n) STP_BY_CODE, n, stp_func_##x
#define PARTS(x, n) STP_BY_CODE, n, stp_func_##x, true
#define SHOW(x) STP_BY_SHOW, IR_SHOW_##x
#define NONE(text) STP_BY_NONE, 0, NULL, false, text
#define GURU(text) STP_BY_NONE, 0, NULL, false, text, true

/* Parameter i of a prototype is at [2 + i]; shorter prototypes end with ')'. */
static const struct stp_builtin builtins[NBUILTINS] = {
#define STP_FUNC(name, proto, effect, ...)                                                                         \
	{ #name, TYPE((proto)[0]), sizeof(proto) - 4,                                                         \
	  { TYPE((proto)[2]), TYPE((proto)[sizeof(proto) > 5 ? 3 : 1]), TYPE((proto)[sizeof(proto) > 6 ? 4 : 1]) }, \
	  effect, __VA_ARGS__ },
#include "stp/functions.def"
#undef STP_FUNC
#define WORDS(name, ...) \
	{ #name, STP_STRINGS, 1, { STP_LONG }, true, STP_BY_CODE, WORDS_##name, stp_func_words, true, NULL },
#include "lang/words.def"
#undef WORDS
};

const char *stp_builtin_name(size_t i)
{
	return i < NBUILTINS ? builtins[i].name : NULL;
}

const struct stp_builtin *stp_find_builtin(const char *name, size_t nparams)
{
	for (size_t i = 0; i < NBUILTINS; i++)
		if (!strcmp(name, builtins[i].name) && (nparams == SIZE_MAX || nparams == builtins[i].nparams))
			return &builtins[i];
	return NULL;
}
