/*
 * Debug information: source files and lines (DWARF 5, 6.2).
 */
#include "elf/debug_priv.h"

#include <dwarf.h>

#include "elf/libdw.h"

/* In DWARF 5 the first file has the number 0, which meant "none" before; elfutils 0.188 takes it so in both. */
const char *debug_decl_file(Dwarf_Die *die)
{
	const char *file = libdw.decl_file(die);
	Dwarf_Die unit;
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word n;
	Dwarf_Half version;
	size_t count;

	if (file || !libdw.attr_integrate(die, DW_AT_decl_file, &attr) || libdw.formudata(&attr, &n) || n ||
	    !libdw.cu_die(attr.cu, &unit, &version, NULL, NULL, NULL, NULL, NULL) || version < 5 ||
	    libdw.getsrcfiles(&unit, &files, &count) || !count)
		return file;
	return libdw.filesrc(files, 0, NULL, NULL);
}

bool debug_source(struct debug *d, uint64_t entry, const char **file, int *line)
{
	struct debug_scopes s;

	if (!debug_find_scopes(d, entry, NULL, &s) || !s.func)
		return false;
	*file = debug_decl_file(&s.v[s.func]);
	return *file && !libdw.decl_line(&s.v[s.func], line);
}

/* Call @fn for each statement of @file that begins in the function. */
static void each_line(struct debug *d, uint64_t entry, const char *file,
		      void (*fn)(void *ctx, int line, uint64_t addr), void *ctx)
{
	struct debug_scopes s;
	Dwarf_Lines *lines;
	size_t n;

	if (!debug_find_scopes(d, entry, NULL, &s) || !s.func || libdw.getsrclines(&s.v[0], &lines, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = libdw.onesrcline(lines, i);
		bool begins = false, ends = true;
		Dwarf_Addr addr;
		int number;

		if (!l || libdw.linebeginstatement(l, &begins) || libdw.lineendsequence(l, &ends) || !begins || ends ||
		    libdw.lineaddr(l, &addr) || libdw.lineno(l, &number) || libdw.haspc(&s.v[s.func], addr) <= 0 ||
		    !debug_is_file(libdw.linesrc(l, NULL, NULL), file))
			continue;
		fn(ctx, number, addr);
	}
}

struct line {
	int line;
	uint64_t addr;
};

static void first_of(void *ctx, int line, uint64_t addr)
{
	struct line *l = ctx;

	if (line == l->line && (!l->addr || addr < l->addr))
		l->addr = addr;
}

static void last_of(void *ctx, int line, uint64_t addr)
{
	struct line *l = ctx;

	(void)addr;
	if (line > l->line)
		l->line = line;
}

uint64_t debug_line(struct debug *d, uint64_t entry, const char *file, int line)
{
	struct line l = { .line = line };

	each_line(d, entry, file, first_of, &l);
	return l.addr;
}

int debug_last_line(struct debug *d, uint64_t entry, const char *file)
{
	struct line l = { 0 };

	each_line(d, entry, file, last_of, &l);
	return l.line;
}

static void nearest_of(void *ctx, int line, uint64_t addr)
{
	struct line *l = ctx;	/* @line: the line searched for; @addr: the best line so far */
	int best = (int)l->addr;

	(void)addr;
	if (line >= l->line ? !best || best < l->line || line < best : !best || (best < l->line && line > best))
		l->addr = (uint64_t)line;
}

int debug_nearest_line(struct debug *d, uint64_t entry, const char *file, int line)
{
	struct line l = { .line = line };

	each_line(d, entry, file, nearest_of, &l);
	return (int)l.addr;
}

bool debug_is_statement(struct debug *d, uint64_t pc, uint64_t *before)
{
	Dwarf_Lines *lines;
	Dwarf_Die unit;
	size_t n;

	*before = 0;
	if (!debug_find_unit(d, pc, &unit) || libdw.getsrclines(&unit, &lines, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = libdw.onesrcline(lines, i);
		bool begins = false;
		Dwarf_Addr addr;

		if (!l || libdw.linebeginstatement(l, &begins) || !begins || libdw.lineaddr(l, &addr) || addr > pc)
			continue;
		if (addr > *before)
			*before = addr;
	}
	return *before == pc;
}

bool debug_source_at(struct debug *d, uint64_t pc, const char **file, int *line)
{
	Dwarf_Line *l;
	Dwarf_Die unit;

	if (!debug_find_unit(d, pc, &unit))
		return false;
	l = libdw.getsrc_die(&unit, pc);
	*file = l ? libdw.linesrc(l, NULL, NULL) : NULL;
	return *file && !libdw.lineno(l, line) && *line > 0;
}
