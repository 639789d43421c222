/*
 * Any bytes as a file with debug information: its functions, what they know of their variables and lines, and all types
 * that these lead to.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "elf/debug.h"
#include "elf/obj.h"

enum { FUNCS = 16, DEEP = 4, VARS = 64, MEMBERS = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
	struct debug *debug;
	uint64_t pc;
	const char *inlined;
	unsigned int left, deep;	/* how many more, how far down */
	struct strbuf text;
};

static void look_at_type(struct walk *w, const Dwarf_Die *type);

static void look_at_member(void *ctx, const struct debug_member *m)
{
	struct walk *w = ctx;

	if (!w->left)
		return;
	w->left--;
	if (!m->why && m->bits && (m->bits > 64 || m->bit >= 64))
		__builtin_trap();
	if (!m->why)
		look_at_type(w, &m->type);
}

static void look_at_type(struct walk *w, const Dwarf_Die *type)
{
	struct debug_member member;
	struct debug_shape shape;
	Dwarf_Die bare, target;

	if (w->deep == DEEP || w->text.len > 65536)
		return;
	w->deep++;
	debug_type_name(type, &w->text);
	debug_shape(type, &bare, &shape);
	debug_size(&bare);
	debug_is_char(&bare);
	if (shape.kind == DEBUG_ARRAY)
		for (unsigned int k = 0; k < debug_dims(&bare) && k < 8; k++)
			debug_count(&bare, k);
	if (shape.kind == DEBUG_STRUCT) {
		debug_each_member(&bare, look_at_member, w);
		debug_member(&bare, "next", &member);
		debug_member(&bare, "f", &member);
	}
	if (debug_target(&bare, &target))
		look_at_type(w, &target);
	w->deep--;
}

static void look_at_var(void *ctx, const char *name, const Dwarf_Die *type)
{
	struct walk *w = ctx;
	struct debug_var var;

	if (!w->left)
		return;
	w->left--;
	if (type)
		look_at_type(w, type);
	if (!debug_var(w->debug, w->pc, w->inlined, name, &var))
		look_at_type(w, &var.type);
}

static void look_at_scope(struct walk *w, uint64_t pc, const char *inlined)
{
	w->pc = pc;
	w->inlined = inlined;
	w->left = VARS;
	debug_each_var(w->debug, pc, inlined, true, true, look_at_var, w);
}

static void look_at_inlined(void *ctx, const char *name, uint64_t pc, const char *file, int line)
{
	struct walk *w = ctx;

	(void)line;
	if (file)
		debug_is_file(file, "debug_source.c");
	look_at_scope(w, pc, name);
}

static void look_at_label(void *ctx, const struct debug_label *l)
{
	look_at_scope(ctx, l->pc, NULL);
}

static void look_at_function(struct walk *w, uint64_t entry)
{
	uint64_t before, body = debug_body(w->debug, entry);
	const char *file = NULL;
	Dwarf_Die type;
	int line = 0;

	look_at_scope(w, entry, NULL);
	look_at_scope(w, body, NULL);
	debug_is_statement(w->debug, body, &before);
	if (debug_result(w->debug, entry, &type))
		look_at_type(w, &type);
	debug_source_at(w->debug, body, &file, &line);
	debug_each_label(w->debug, entry, look_at_label, w);
	if (debug_source(w->debug, entry, &file, &line) && file) {
		debug_line(w->debug, entry, file, line);
		debug_nearest_line(w->debug, entry, file, line + 1);
		debug_last_line(w->debug, entry, file);
	}
}

static void look(struct debug *d, struct obj *o)
{
	static const char *const types[] = { "struct node", "union x", "enum colour", "number", "int" };
	static const char *const globals[] = { "head", "counted", "mine" };
	struct walk w = { .debug = d };
	struct debug_var var;
	struct obj_func f;
	Dwarf_Die type;

	for (size_t k = 0; k < FUNCS && obj_func(o, k, &f); k++)
		look_at_function(&w, f.addr);
	debug_each_inlined(d, look_at_inlined, &w);
	for (size_t k = 0; k < sizeof(types) / sizeof(*types); k++)
		if (debug_type(d, types[k], &type))
			look_at_type(&w, &type);
	for (size_t k = 0; k < sizeof(globals) / sizeof(*globals); k++) {
		w.left = MEMBERS;
		if (!debug_global(d, globals[k], k ? NULL : "debug_source.c", &var))
			look_at_type(&w, &var.type);
	}
	strbuf_fini(&w.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct strbuf why = { 0 };
	struct obj *o = NULL;
	struct debug *d;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	if (!obj_open_fd(fd, "fuzz", &o, &why)) {
		d = obj_debug(o);
		if (d)
			look(d, o);
	}
	obj_close(o);
	strbuf_fini(&why);
	return 0;
}
