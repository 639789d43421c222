#include "probe/pylocals.h"

#include <string.h>

#include "base/arena.h"
#include "base/ends.h"
#include "base/strbuf.h"
#include "probe/pycode.h"
#include "probe/pystacks_priv.h"
#include "probe/pyvalue.h"

enum {
	VARS_MAX = 256,			/* of one frame */
	NAME_MAX = 128, VALUE_MAX = 250,	/* bytes of text */
	CELL_VALUE = 0,			/* in a cell, behind its header */
	STACKREF_TAGS = 7,
	NAMES_MAX = 3,
};

/* The tuples with the names of a code object's variables, in the order of the slots. */
static size_t find_names(const struct pystacks_reader *r, uint64_t code, uint64_t v[NAMES_MAX])
{
	enum { VARNAMES = 72, FREEVARS = 80, CELLVARS = 88, BEFORE_FILE = 16 };

	if (r->py.version >= 0x030b) {
		v[0] = remote_word(&r->mem, code + r->py.file - BEFORE_FILE);
		return 1;
	}
	v[0] = remote_word(&r->mem, code + VARNAMES);
	v[1] = remote_word(&r->mem, code + CELLVARS);
	v[2] = remote_word(&r->mem, code + FREEVARS);
	return NAMES_MAX;
}

uint64_t pylocals_value(const struct pystacks_reader *r, const struct pystack_frame *f, uint64_t i)
{
	const struct pyoffsets_slots *at = r->slots;
	uint64_t obj = remote_word(&r->mem, f->at + at->first + 8 * i) & ~(uint64_t)(at->is_tagged ? STACKREF_TAGS : 0);

	return pyvalue_type_is(&r->values, obj, "cell") ? remote_word(&r->mem, obj + r->values.head + CELL_VALUE) : obj;
}

static const char *taken(struct arena *a, struct strbuf *text)
{
	const char *ret = arena_printf(a, "%s", strbuf_str(text));

	strbuf_fini(text);
	return ret;
}

static void read_frame(const struct pystacks_reader *r, struct pystack_frame *f)
{
	const struct pyvalues *v = &r->values;
	uint64_t names[NAMES_MAX], slot = 0;
	size_t n = find_names(r, f->code_at, names);

	f->locals = arena_alloc(r->arena, VARS_MAX * sizeof(*f->locals));
	for (size_t k = 0; k < n; k++) {
		uint64_t count = pyvalue_tuple_size(v, names[k]);

		for (uint64_t i = 0; i < count && f->nlocals < VARS_MAX; i++, slot++) {
			uint64_t obj = pylocals_value(r, f, slot);
			struct strbuf name = { 0 }, value = { 0 };

			if (!obj)
				continue;
			if (!pyvalue_text(v, pyvalue_tuple_item(v, names[k], i), NAME_MAX, &name))
				strbuf_puts(&name, "?");
			pyvalue_show(v, obj, VALUE_MAX, &value);
			f->locals[f->nlocals++] = (struct pystack_local){ taken(r->arena, &name), taken(r->arena, &value) };
		}
	}
}

void pylocals_read(const struct pystacks_reader *r, struct pystack *st)
{
	remote_forget(&r->mem);
	for (size_t i = 0; i < st->n; i++)
		st->frames[i].nlocals = 0;
	for (size_t i = 0; i < st->n && !pyvalue_is_late(&r->values); i++)
		read_frame(r, &st->frames[i]);
	st->has_locals = true;
	st->locals_cut = pyvalue_is_late(&r->values);
}

/* The thread's outermost function of Python is a method of its threading.Thread. */
const char *pylocals_thread_name(const struct pystacks_reader *r, const struct pystack *st)
{
	const struct pystack_frame *f = st->n ? &st->frames[st->n - 1] : NULL;
	struct strbuf text = { 0 };

	if (!f || st->is_cut || !ends_with(f->code->file, "/threading.py") || !ends_with(f->code->name, "_bootstrap"))
		return NULL;
	if (!pyvalue_text(&r->values, pyvalue_attribute(&r->values, pylocals_value(r, f, 0), "_name"), NAME_MAX, &text)) {
		strbuf_fini(&text);
		return NULL;
	}
	return taken(r->arena, &text);
}
