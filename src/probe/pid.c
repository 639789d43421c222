/*
 * The pid provider: the functions of a process.  DTrace guide, "pid Provider".
 *
 *	provider  pid1234; a script says pid$target
 *	module    the base name of the file; in a description also its path, the base name up to ".so", behind it or, as in
 *		  libc-2.31.so, up to the version, or a.out for the program itself
 *	function  a symbol of .symtab, or of .dynsym and .gnu_debugdata in a stripped file
 *	name      entry, return, or an instruction's distance from the start of the function, in hex
 *
 * entry has the function's arguments as arg0 to arg9, by the machine's calling convention for integers.  return has
 * its value as arg1.  The kernel fires it at the return address, so it is unknown from which instruction the function
 * returned: arg0 is -1.
 *
 * A function with several names is found by each of them, and once by a pattern.  IFUNC resolvers (memcpy has one)
 * are left out: one runs once when the program starts, and callers call the function that it returned.  An offset is
 * accepted only if decoding the function from its start arrives at it: a breakpoint in the middle of an instruction
 * would corrupt that.  Libraries that the process maps later are found by the next search.
 */
#include "probe/provider.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/procs.h"

extern const struct provider provider_pid;

enum {
	CODE_MAX = 1 << 20,		/* bytes of a function that are decoded */
	ALL_CODE_MAX = 32 << 10,	/* bytes of several functions together, each instruction of which is armed */
};

/* A function that can be armed. */
struct func {
	const char *name;
	uint64_t off, size;	/* offset in the file */
	bool walked;		/* the kernel recognises its start, and finds its caller */
};

struct pid_file {
	struct pid_file *next;
	uint64_t dev, ino;
	const char *name;
	struct file *file;	/* stays open; NULL: unusable */
	const struct arch *arch;
	struct func *funcs;
	size_t nfuncs, cap;
	struct arch_operand args[10], result[2];
	unsigned int nargs, nresult;
	const char *why;	/* why it is unusable, or NULL */
};

/* The state of matching a description against its process. */
struct look {
	struct finding *f;
	const char *prov;
	uint32_t pid;
	uint64_t exe_dev, exe_ino;
	bool each_insn;		/* of the module that is looked at: a pattern of names means its instructions, too */
};

/* The pid in the provider's name "pid1234", or in a pattern of it such as "p*d1234"; 0: it is none. */
static uint32_t pid_of(const char *prov)
{
	uint32_t pid = desc_pid(prov);
	char name[32];

	snprintf(name, sizeof(name), "pid%.20s", desc_digits(prov));
	return *prov == 'p' && desc_glob(prov, name) ? pid : 0;
}

/* --- files -------------------------------------------------------------------------------------------- */

/*
 * Linux 6.12 recognises the start of a function on x86-64 by push %rbp and endbr64 (arch/x86/events/core.c,
 * is_uprobe_at_func_entry).
 */
bool pid_is_walked(const struct obj *o, uint64_t off)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned int major = 0, minor = 0;
	struct utsname uts;
	uint8_t code[4];

	if (obj_info(o)->machine != EM_X86_64 || uname(&uts) || sscanf(uts.release, "%u.%u", &major, &minor) != 2 ||
	    major < 6 || (major == 6 && minor < 12) || obj_read(o, off, code, sizeof(code)))
		return false;
	return code[0] == 0x55 || !memcmp(code, endbr64, sizeof(code));
}

static void read_funcs(struct pid_file *pf, struct arena *a, struct obj *o)
{
	struct obj_func of;
	uint64_t off;

	for (size_t i = 0; obj_func(o, i, &of); i++) {
		if (of.is_ifunc || of.end <= of.addr || !obj_offset(o, of.addr, true, &off))
			continue;
		pf->funcs = arena_grow(a, pf->funcs, &pf->cap, pf->nfuncs, sizeof(*pf->funcs));
		pf->funcs[pf->nfuncs++] = (struct func){ arena_strdup(a, of.name), off, of.end - of.addr,
							pid_is_walked(o, off) };
	}
}

static void file_read(struct pid_file *pf, struct arena *a, const struct procs_map *map)
{
	struct strbuf why = { 0 };
	struct file *f = NULL;
	struct obj *o = NULL;

	if (procs_open(map, &f, &why) || obj_open_file(f, &o, &why)) {
		pf->why = arena_strdup(a, strbuf_str(&why));
		goto out;
	}
	pf->arch = arch_find(obj_info(o)->machine);
	if (!pf->arch || pf->arch != arch_host()) {
		pf->why = arena_printf(a, "%s is a program for another machine", map->path);
		goto out;
	}
	pf->file = file_use(f);
	pf->nargs = arch_operands(pf->arch, pf->arch->call_args, pf->args, 10);
	pf->nresult = arch_operands(pf->arch, pf->arch->call_result, pf->result, 2);
	read_funcs(pf, a, o);
out:
	obj_close(o);
	file_close(f);
	strbuf_fini(&why);
}

void pid_files_close(struct pid_file *pf)
{
	for (; pf; pf = pf->next)
		file_close(pf->file);
}

static struct pid_file *file_get(struct probe_set *set, const struct procs_map *map)
{
	struct pid_file **head = set_pid_files(set), *pf;
	struct arena *a = set_arena(set);
	const char *slash;

	for (pf = *head; pf; pf = pf->next)
		if (pf->ino == map->ino && pf->dev == map->dev && !(pf->file && file_check(pf->file)))
			return pf;
	pf = arena_new_of(a, struct pid_file);
	pf->dev = map->dev;
	pf->ino = map->ino;
	slash = strrchr(map->path, '/');
	pf->name = arena_strdup(a, slash ? slash + 1 : map->path);
	file_read(pf, a, map);
	pf->next = *head;
	*head = pf;
	return pf;
}

/* --- probes ------------------------------------------------------------------------------------------- */

static void add_probe(const struct look *l, const struct pid_file *pf, const struct func *fn, const char *name,
		      uint64_t off, bool ret)
{
	struct probe key = { .prov = l->prov, .mod = pf->name, .func = fn->name, .name = name, .kind = PROBE_SITES,
			     .pid = l->pid };
	bool entry = !strcmp(name, "entry"), made;
	struct site site = { .file = pf->file, .dev = pf->dev, .ino = pf->ino, .off = fn->off + off, .ret = ret };
	struct probe *p;

	site.skips_caller = !ret && off == 0 && !fn->walked;
	site.args_text = ret ? pf->arch->call_result : entry ? pf->arch->call_args : "";
	if (ret) {
		memcpy(site.args, pf->result, sizeof(pf->result));
		site.nargs = pf->nresult;
	} else if (entry) {
		memcpy(site.args, pf->args, sizeof(pf->args));
		site.nargs = pf->nargs;
	}
	p = set_probe(l->f->set, &key, &made);
	probe_add_site(l->f->set, p, set_site(l->f->set, &site));
	found_add(l->f, p);
}

/*
 * Decode @fn and add the instructions that the description names.  False: the offset @only (UINT64_MAX: all that
 * match) is not the start of one.
 */
static bool add_offsets(const struct look *l, const struct pid_file *pf, const struct func *fn, uint64_t only)
{
	size_t size = fn->size > CODE_MAX ? CODE_MAX : (size_t)fn->size, at = 0;
	uint8_t *code = malloc(size);
	struct obj *o = NULL;
	bool found = only == UINT64_MAX;
	char name[24];

	if (!code || obj_open_file(pf->file, &o, NULL) || obj_read(o, fn->off, code, size))
		goto out;
	while (at < size && at <= only) {
		unsigned int len = pf->arch->insn_len(code + at, size - at);

		snprintf(name, sizeof(name), "%zx", at);
		if (only == UINT64_MAX ? desc_glob(l->f->desc->name, name) : at == only) {
			add_probe(l, pf, fn, name, at, false);
			found = true;
		}
		if (!len)
			break;
		at += len;
	}
out:
	obj_close(o);
	free(code);
	return found;
}

static void look_at_func(const struct look *l, const struct pid_file *pf, const struct func *fn)
{
	const struct probe_desc *desc = l->f->desc;
	char *end;

	if (desc_glob(desc->name, "entry"))
		add_probe(l, pf, fn, "entry", 0, false);
	if (desc_glob(desc->name, "return"))
		add_probe(l, pf, fn, "return", 0, true);
	if (!*desc->name || desc_is_glob(desc->name)) {
		if (l->each_insn)
			add_offsets(l, pf, fn, UINT64_MAX);
	} else if (isxdigit((unsigned char)*desc->name)) {
		uint64_t off = strtoull(desc->name, &end, 16);

		if (!*end && !add_offsets(l, pf, fn, off))
			strbuf_printf(set_why(l->f->set), "%s`%s: no instruction starts at 0x%" PRIx64
				      " that is known to be one", pf->name, fn->name, off);
	}
}

/*
 * Is the library's name @name @mod with a version?  For libc: libc.so.6, libc-2.31.so; for libz.so and libz.so.1:
 * libz.so.1.2.
 */
static bool is_versioned(const char *name, const char *mod)
{
	size_t len = strlen(mod);
	bool has_so = strstr(mod, ".so");

	if (!len || strncmp(name, mod, len))
		return false;
	if (has_so)
		return name[len] == '.';
	return !strncmp(name + len, ".so", 3) || (name[len] == '-' && isdigit((unsigned char)name[len + 1]));
}

/* a.out, the base name, the path, or libc for libc.so.6 */
static bool module_matches(const struct look *l, const struct procs_map *map)
{
	const char *mod = l->f->desc->mod, *slash = strrchr(map->path, '/'), *name = slash ? slash + 1 : map->path;

	if (!strcmp(mod, "a.out"))
		return map->ino == l->exe_ino && map->dev == l->exe_dev;
	return desc_glob(mod, name) || !strcmp(mod, map->path) || is_versioned(name, mod);
}

/*
 * Does the description mean each instruction of the functions in @pf that it matches?  Of one function it does; of a
 * pattern of functions only in a module that it names, and if that is small: to arm all of a library takes minutes.
 */
static bool means_insns(const struct probe_desc *desc, const struct pid_file *pf)
{
	uint64_t bytes = 0;

	if (*desc->func && !desc_is_glob(desc->func))
		return true;
	if (!*desc->mod || desc_is_glob(desc->mod))
		return false;
	for (size_t i = 0; i < pf->nfuncs; i++)
		bytes += desc_glob(desc->func, pf->funcs[i].name) ? pf->funcs[i].size : 0;
	return bytes <= ALL_CODE_MAX;
}

static int look_at_map(void *ctx, const struct procs_map *map)
{
	struct look *l = ctx;
	const struct probe_desc *desc = l->f->desc;
	const struct func *last = NULL;
	struct pid_file *pf;

	if (!module_matches(l, map))
		return 0;
	pf = file_get(l->f->set, map);
	if (pf->why && *desc->mod && !desc_is_glob(desc->mod))
		strbuf_printf(set_why(l->f->set), "%s", pf->why);
	l->each_insn = means_insns(desc, pf);
	for (size_t i = 0; i < pf->nfuncs; i++) {
		const struct func *fn = &pf->funcs[i];

		if (!desc_glob(desc->func, fn->name))
			continue;
		/* Of several names at one address the last match is the best. */
		if (last && last->off != fn->off)
			look_at_func(l, pf, last);
		last = fn;
	}
	if (last)
		look_at_func(l, pf, last);
	return 0;
}

/* The program's file, with the device of its mapping: some file systems have another one in stat. */
struct exe {
	const char *path;
	uint64_t dev, ino;
	struct look *l;
};

static int find_exe(void *ctx, const struct procs_map *map)
{
	struct exe *exe = ctx;

	if (map->ino != exe->ino || (map->dev != exe->dev && strcmp(map->path, exe->path)))
		return 0;
	exe->l->exe_dev = map->dev;
	exe->l->exe_ino = map->ino;
	return 1;
}

static void read_exe(struct look *l)
{
	char link[32], path[4096];
	struct exe exe = { .path = path, .l = l };
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", l->pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0 || stat(link, &st))
		return;
	path[n] = '\0';
	exe.dev = st.st_dev;
	exe.ino = st.st_ino;
	procs_maps(l->pid, find_exe, &exe);
}

static void find(struct finding *f)
{
	struct look l = { .f = f, .prov = f->desc->prov, .pid = pid_of(f->desc->prov) };
	int err;

	if (!l.pid) {
		if (!strcmp(f->desc->prov, "pid") || !strcmp(f->desc->prov, "pid*"))
			strbuf_puts(set_why(f->set), "the pid provider needs a process: pid$target with -p or -c, or"
						     " pid1234");
		return;
	}
	if (desc_is_glob(l.prov))
		l.prov = arena_printf(set_arena(f->set), "pid%" PRIu32, l.pid);
	read_exe(&l);
	err = procs_maps(l.pid, look_at_map, &l);
	if (err && !set_why(f->set)->len)
		strbuf_printf(set_why(f->set), "process %" PRIu32 ": %s", l.pid, strerror(-err));
}

const struct provider provider_pid = { find };

/* --- for whoever starts the process ------------------------------------------------------------------- */

bool probe_wants_libraries(const struct probe_desc *desc)
{
	return pid_of(desc->prov) && strcmp(desc->mod, "a.out");
}

static int any_module(void *ctx, const struct procs_map *map)
{
	return module_matches(ctx, map);
}

bool probe_has_module(const struct probe_desc *desc)
{
	struct finding f = { .desc = desc };
	struct look l = { .f = &f, .pid = pid_of(desc->prov) };

	if (!l.pid)
		return false;
	read_exe(&l);
	return procs_maps(l.pid, any_module, &l) > 0;
}
