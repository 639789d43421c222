#include "probe/pylayout.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "elf/obj.h"
#include "probe/pyoffsets.h"
#include "probe/python.h"

static bool find_symbol(struct obj *o, const char *name, uint64_t *addr)
{
	return obj_exports(o, name, addr) || obj_symbol(o, name, strlen(name), addr);
}

int pylayout_find(struct obj *o, uint64_t bias, struct abi_python *ret)
{
	uint64_t runtime, code_type, off, words[PYOFFSETS_WORDS] = { 0 };
	struct python_facts facts;
	int e;

	if (obj_info(o)->elf_class != 2 || !find_symbol(o, "_PyRuntime", &runtime) ||
	    !find_symbol(o, "PyCode_Type", &code_type))
		return -ENOENT;
	python_facts(o, &facts);
	if (pyoffsets_publishes(facts.version) &&
	    (!obj_offset(o, runtime, false, &off) || obj_read(o, off, words, sizeof(words))))
		return -ENOTSUP;
	e = pyoffsets_find(facts.version, words, ret);
	if (!e) {
		ret->runtime = runtime + bias;
		ret->code_type = code_type + bias;
	}
	return e;
}
