/*
 * This relies on these facts: CPython 3.8 and later exports PySys_AddAuditHook; a free-threaded one exports
 * _Py_DecRefShared, 3.14 and later Py_HashBuffer; PyPy exports pypy_main_startup.  glibc has dlopen and threads in libc since 2.34, before that in
 * libdl, to which every CPython is linked, and in libpthread; musl has loader and C library in one file.
 */
#include "target/guest.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "abi/agent.h"
#include "abi/cpython.h"
#include "abi/record.h"
#include "arch/arch.h"
#include "arch/remote.h"
#include "base/file.h"
#include "elf/obj.h"
#include "target/agent_priv.h"

enum { TEXT_MAX = 64 << 20, PIECE = 32 << 10 };	/* how much of a C library's text is searched, and at a time, bytes */

static const char *base_name(const char *path)
{
	const char *s = strrchr(path, '/');

	return s ? s + 1 : path;
}

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

/* libc.so.6, libc-2.31.so, libc.musl-x86_64.so.1; musl's file is named as the loader. */
static bool is_libc_name(const char *base)
{
	return begins(base, "libc.so") || begins(base, "libc-2.") || begins(base, "libc.musl-") || begins(base, "ld-musl-");
}

static bool is_libdl_name(const char *base)
{
	return begins(base, "libdl.so") || begins(base, "libdl-2.");
}

/* glibc before 2.34; the loader takes libpthread's locks, too, for an object with thread-local variables. */
static bool is_libpthread_name(const char *base)
{
	return begins(base, "libpthread.so") || begins(base, "libpthread-2.");
}

/* The unwinder counts, too: the loader calls back into it while it walks its list of objects. */
static bool is_loader_name(const char *base)
{
	return begins(base, "ld-linux") || begins(base, "ld-2.") || begins(base, "ld.so") || begins(base, "ld64.so") ||
	       begins(base, "libgcc_s") || begins(base, "libunwind") || is_libdl_name(base);
}

static bool is_allocator_name(const char *base)
{
	return strstr(base, "malloc") != NULL;	/* jemalloc, tcmalloc, mimalloc, rpmalloc, snmalloc */
}

const struct target_map *guest_map(const struct target_maps *maps, uint64_t addr)
{
	size_t i;

	for (i = 0; i < maps->n; i++)
		if (addr >= maps->v[i].start && addr < maps->v[i].end)
			return &maps->v[i];
	return NULL;
}

enum guest_code guest_code(const struct guest *g, uint64_t pc)
{
	const struct target_map *m = guest_map(&g->maps, pc);
	const char *base = m ? base_name(m->path) : NULL;

	if (!m || !m->is_exec)
		return GUEST_NONE;
	if (m->path[0] == '[')
		return GUEST_KERNEL;
	if (m->ino && m->ino == g->python_ino && m->dev == g->python_dev)
		return GUEST_PYTHON;
	if (is_loader_name(base))
		return GUEST_LOADER;
	if (is_libc_name(base) || is_libpthread_name(base))
		return GUEST_LIBC;
	return is_allocator_name(base) ? GUEST_ALLOCATOR : GUEST_OTHER;
}

/* A mapped file; @m is its first code mapping. */
struct mapped {
	const struct target *t;
	const struct target_maps *maps;
	const struct target_map *m;
	struct obj *o;
};

static void close_mapped(struct mapped *f)
{
	obj_close(f->o);
	f->o = NULL;
}

static bool open_mapped(struct mapped *f, const struct target *t, const struct target_maps *maps,
			const struct target_map *m)
{
	struct file *file;
	int err;

	*f = (struct mapped){ .t = t, .maps = maps, .m = m };
	if (maps_open((uint32_t)t->pid, m, &file, NULL))
		return false;
	err = obj_open_file(file, &f->o, NULL);
	file_close(file);
	return !err;
}

/* The program that it runs; @o NULL: it could not be opened. */
struct program {
	struct target_image image;
	struct obj *o;
};

/* The same, of which @p may be the file: then it is not opened again. */
static bool take_mapped(struct mapped *f, const struct target *t, const struct target_maps *maps, const struct target_map *m,
			struct program *p)
{
	if (!p->o || m->ino != p->image.ino || m->dev != p->image.dev)
		return open_mapped(f, t, maps, m);
	*f = (struct mapped){ t, maps, m, p->o };
	p->o = NULL;
	return true;
}

static bool same_file(const struct target_map *a, const struct target_map *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* The address in the process of the file's address @addr, or 0. */
static uint64_t place(const struct mapped *f, uint64_t addr)
{
	const struct target_map *m;
	uint64_t off;
	size_t i;

	if (!obj_offset(f->o, addr, false, &off))
		return 0;
	for (i = 0; i < f->maps->n; i++) {
		m = &f->maps->v[i];
		if (same_file(m, f->m) && off >= m->off && off - m->off < m->end - m->start)
			return m->start + (off - m->off);
	}
	return 0;
}

/* The address in the process of the exported symbol @name, or 0. */
static uint64_t find(const struct mapped *f, const char *name)
{
	uint64_t addr;

	return obj_exports(f->o, name, &addr) ? place(f, addr) : 0;
}

/* --- the C library ------------------------------------------------------------------------------------- */

/* The address of the signal restorer in the code mapping of @f, or 0. */
static uint64_t find_restorer(const struct mapped *f)
{
	const struct arch_remote *arch = arch_remote();
	uint64_t len = f->m->end - f->m->start, step = PIECE - arch->restorer_len + 1, off;
	uint8_t text[PIECE], *at;

	for (off = 0; off < len && off < TEXT_MAX; off += step) {
		ssize_t n = file_pread(obj_file(f->o)->fd, text, len - off < PIECE ? len - off : PIECE, f->m->off + off);

		at = n > 0 ? memmem(text, (size_t)n, arch->restorer, arch->restorer_len) : NULL;
		if (at)
			return f->m->start + off + (uint64_t)(at - text);
		if (n < PIECE)
			return 0;
	}
	return 0;
}

/* On machines whose C library has none, it is in the vDSO. */
static uint64_t find_restorer_of_kernel(const struct target *t, const struct target_maps *maps)
{
	enum { VDSO_MAX = 4 * 4096 };
	const struct arch_remote *arch = arch_remote();
	uint8_t text[VDSO_MAX], *at;

	for (size_t i = 0; i < maps->n; i++) {
		const struct target_map *m = &maps->v[i];
		size_t len = m->end - m->start < VDSO_MAX ? (size_t)(m->end - m->start) : VDSO_MAX;
		struct iovec here = { text, len }, there = { (void *)(uintptr_t)m->start, len };

		if (strcmp(m->path, "[vdso]") || process_vm_readv(t->pid, &here, 1, &there, 1, 0) != (ssize_t)len)
			continue;
		at = memmem(text, len, arch->restorer, arch->restorer_len);
		return at ? m->start + (uint64_t)(at - text) : 0;
	}
	return 0;
}

static void use_libc(struct guest *g, const struct mapped *f)
{
	g->syscall = find(f, "syscall");
	g->close = find(f, "close");
	g->recvmsg = find(f, "recvmsg");
	g->setenv = find(f, "setenv");
	g->swab = find(f, "swab");
	g->errno_location = find(f, "__errno_location");
	g->restorer = find_restorer(f);
	g->is_musl = !find(f, "gnu_get_libc_version");
	if (!g->dlopen)
		g->dlopen = find(f, "dlopen");
}

/* Up to glibc 2.33; later ones have an empty one, for programs that were linked before: conda's and uv's Pythons. */
static void use_libdl(struct guest *g, const struct mapped *f)
{
	uint64_t addr = find(f, "dlopen");

	if (addr)
		g->dlopen = addr;
}

/* --- the interpreter ------------------------------------------------------------------------------------ */

struct python {
	bool has_api, is_old, is_pypy, is_new_free_threaded;
};

static void look_for_python(struct guest *g, struct python *p, const struct mapped *f)
{
	uint64_t addr;

	p->is_pypy |= obj_exports(f->o, "pypy_main_startup", &addr) || obj_exports(f->o, "PyPy_Initialize", &addr);
	if (!obj_exports(f->o, "Py_InitializeEx", &addr))
		return;
	if (obj_exports(f->o, "PySys_AddAuditHook", &addr)) {
		p->has_api = true;
		/* A malloc inside the interpreter's file cannot be distinguished from the interpreter's code. */
		if (!obj_exports(f->o, "malloc", &addr)) {
			g->python_dev = f->m->dev;
			g->python_ino = f->m->ino;
			g->anchor[0] = f->m->start;
		}
	} else {
		p->is_old = true;
	}
	p->is_new_free_threaded |= obj_exports(f->o, "_Py_DecRefShared", &addr) && obj_exports(f->o, "Py_HashBuffer", &addr);
}

/* Extension modules have the interpreter's tag in their names, too: _json.cpython-311-x86_64-linux-gnu.so, _cffi.pypy39-... */
static bool may_be_python(const char *base)
{
	return (strstr(base, "python") && !strstr(base, ".cpython-")) || (strstr(base, "pypy") && !strstr(base, ".pypy"));
}

/* --- the process ---------------------------------------------------------------------------------------- */

/* Is mapping @i the first code mapping of its file? */
static bool is_first(const struct target_maps *maps, size_t i)
{
	size_t j;

	if (!maps->v[i].is_exec || !maps->v[i].ino)
		return false;
	for (j = 0; j < i; j++)
		if (maps->v[j].is_exec && same_file(&maps->v[j], &maps->v[i]))
			return false;
	return true;
}

/*
 * Examine the mapped files: those with the name of a C library or interpreter; with @all, the others instead, to find
 * an interpreter that is part of another program.
 */
static void look_at_files(const struct target *t, struct guest *g, struct python *p, struct program *program, bool all)
{
	struct mapped f;
	size_t i;

	for (i = 0; i < g->maps.n; i++) {
		const struct target_map *m = &g->maps.v[i];
		const char *base = base_name(m->path);
		bool is_python = may_be_python(base) || m->ino == program->image.ino;
		bool is_promising = is_libc_name(base) || is_libdl_name(base) || is_python;

		if (!is_first(&g->maps, i) || is_promising == all || !take_mapped(&f, t, &g->maps, m, program))
			continue;
		if (is_libc_name(base) && !all)
			use_libc(g, &f);
		else if (is_libdl_name(base) && !all)
			use_libdl(g, &f);
		else
			look_for_python(g, p, &f);
		close_mapped(&f);
	}
}

static int refuse(const struct target *t, const char *reason, struct strbuf *why)
{
	return target_fail(why, -ENOTSUP, "cannot load dtap's agent into process %d: %s", (int)target_pid(t), reason);
}

static int check_program(const struct target *t, struct program *p, struct strbuf *why)
{
	const struct target_image *i = &p->image;
	const struct arch *host = arch_host();

	if (!arch_remote() || !host)
		return refuse(t, "dtap can do that on x86-64 and aarch64 only", why);
	if (i->elf_class == ELFCLASS32)
		return refuse(t, "it is a 32-bit program", why);
	if (i->machine && i->machine != host->e_machine)
		return refuse(t, "it is a program for another machine", why);
	if (!i->file || obj_open_file(i->file, &p->o, NULL))
		return 0;
	return obj_info(p->o)->is_static ? refuse(t, "its program is linked statically, and has no dynamic loader", why) : 0;
}

static int check_python(const struct target *t, const struct python *p, struct strbuf *why)
{
	if (p->is_pypy)
		return refuse(t, "it is a PyPy; the agent is for CPython", why);
	if (p->is_new_free_threaded)
		return refuse(t, "it is a CPython without a GIL (free-threaded) after " CPYTHON_FREE_RANGE ", which the agent does not know", why);
	if (p->is_old && !p->has_api)
		return refuse(t, "its CPython is older than 3.8", why);
	if (!p->has_api)
		return refuse(t, "it is no CPython, or one that does not export its C API", why);
	return 0;
}

/* A shadow stack refuses returns without a matching call, and each call of a chain (chain.h) ends with one. */
static bool has_shadow_stack(const char *status)
{
	const char *features = proc_status_field(status, "x86_Thread_features");

	return features && !strncmp(features, "shstk", 5);
}

/* @status: its text (proc_pid_status(5)), as in the following. */
static bool sees_object(const struct agents_file *object, const struct target *t, const char *status)
{
	const char *uid = proc_status_field(status, "Uid");

	return object->path && uid && strtoul(uid, NULL, 10) == geteuid() &&
	       preload_sees(t->pid, object->path, object->dev, object->ino);
}

/* The file of the program that it runs; 0 and 0 if it has ended. */
static void program_of(const struct target *t, uint64_t *dev, uint64_t *ino)
{
	char path[32];
	struct stat st;

	*dev = *ino = 0;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pid);
	if (stat(path, &st))
		return;
	*dev = st.st_dev;
	*ino = st.st_ino;
}

static void set_anchors(struct guest *g)
{
	const uint64_t anchors[] = { g->anchor[0], g->dlopen, g->syscall, g->close, g->recvmsg, g->swab, g->setenv,
				     g->errno_location, g->restorer, g->entry };

	_Static_assert(sizeof(anchors) == sizeof(g->anchor), "all of them");
	memcpy(g->anchor, anchors, sizeof(anchors));
}

static uint64_t entry_in(const struct agents *a, const struct target *t, const struct target_maps *maps);

int guest_find(const struct agents *a, const struct target *t, struct guest *ret, struct strbuf *why)
{
	struct program program = { .o = NULL };
	struct strbuf status = { 0 };
	const char *tracer;
	struct python py = { 0 };
	size_t i;
	int err;

	memset(ret, 0, sizeof(*ret));
	err = target_image(t, &program.image, why);
	if (err)
		return err;
	err = check_program(t, &program, why);
	if (!err)
		err = target_maps(t, &ret->maps, why);
	if (err)
		goto out;
	proc_read(t->pid, "status", &status);	/* of one that has ended there is none */
	tracer = proc_status_field(strbuf_str(&status), "TracerPid");
	ret->tracer = tracer ? strtol(tracer, NULL, 10) : 0;
	look_at_files(t, ret, &py, &program, false);
	if (!py.has_api && !py.is_pypy)
		look_at_files(t, ret, &py, &program, true);
	err = check_python(t, &py, why);
	if (err)
		goto out;
	if (!ret->restorer)
		ret->restorer = find_restorer_of_kernel(t, &ret->maps);
	if (!ret->dlopen || !ret->syscall || !ret->close || !ret->recvmsg || !ret->swab || !ret->restorer)
		err = refuse(t, "its C library is none that dtap knows", why);
	else if (has_shadow_stack(strbuf_str(&status)))
		err = refuse(t, "it runs with a shadow stack", why);
	for (i = 0; i < ret->maps.n; i++)
		ret->has_allocator |= ret->maps.v[i].is_exec && is_allocator_name(base_name(ret->maps.v[i].path));
	ret->sees_object = sees_object(agents_file_for(a, ret->is_musl), t, strbuf_str(&status));
	ret->entry = entry_in(a, t, &ret->maps);
	if (!err && !ret->entry && !agents_file_for(a, ret->is_musl)->path)
		err = refuse(t, "it runs on musl, and dtap-agent-musl.so is not installed", why);
	set_anchors(ret);
	program_of(t, &ret->program_dev, &ret->program_ino);
out:
	obj_close(program.o);
	target_image_fini(&program.image);
	strbuf_fini(&status);
	return err;
}

bool guest_is_starting(const struct guest *g)
{
	return g->maps.n && !g->syscall;
}

void guest_fini(struct guest *g)
{
	target_maps_fini(&g->maps);
	memset(g, 0, sizeof(*g));
}

static bool is_file(const struct agents_file *f, uint64_t dev, uint64_t ino)
{
	return f->path && f->dev == dev && f->ino == ino;
}

/*
 * Is it our object, or one that understands us as well, of another build?  With one of another version beside it the process
 * gets ours, too.
 */
static bool understands(const struct agents *a, const struct mapped *f)
{
	const struct obj_info *i = obj_info(f->o);
	struct abi_agent_versions v;

	if (is_file(&a->object, i->dev, i->ino) || is_file(&a->musl, i->dev, i->ino))
		return true;
	return obj_note(f->o, ABI_AGENT_OWNER, ABI_AGENT_VERSIONS, &v, sizeof(v)) && v.segment == ABI_VERSION &&
	       v.messages == ABI_AGENT_VERSION;
}

/* Is @m a mapping of our object, or of another copy of it? */
static bool is_object(const struct agents *a, const struct target *t, const struct target_map *m)
{
	struct file *f;
	bool ret;

	if (is_file(&a->object, m->dev, m->ino) || is_file(&a->musl, m->dev, m->ino))
		return true;
	if (m->ino != a->object.ino && m->ino != a->musl.ino && !strstr(base_name(m->path), "dtap-agent"))
		return false;
	if (maps_open((uint32_t)t->pid, m, &f, NULL))
		return false;
	ret = is_file(&a->object, f->dev, f->ino) || is_file(&a->musl, f->dev, f->ino) || strstr(base_name(m->path), "dtap-agent");
	file_close(f);
	return ret;
}

static uint64_t entry_in(const struct agents *a, const struct target *t, const struct target_maps *maps)
{
	struct mapped f;
	uint64_t ret = 0;
	size_t i;

	for (i = 0; i < maps->n && !ret; i++) {
		if (!is_first(maps, i) || !is_object(a, t, &maps->v[i]) || !open_mapped(&f, t, maps, &maps->v[i]))
			continue;
		if (obj_info(f.o)->entry && understands(a, &f))
			ret = place(&f, obj_info(f.o)->entry);
		close_mapped(&f);
	}
	return ret;
}

uint64_t guest_entry(const struct agents *a, const struct target *t)
{
	struct target_maps maps;
	uint64_t ret;

	if (target_maps(t, &maps, NULL))
		return 0;
	ret = entry_in(a, t, &maps);
	target_maps_fini(&maps);
	return ret;
}

bool agents_are_in(const struct agents *a, const struct target *t)
{
	return guest_entry(a, t) != 0;
}

/* Is one of the object's copies in @now that @was does not show?  Loaders map an object first and its code a moment later. */
static bool is_object_new(const struct agents *a, const struct target *t, const struct target_maps *was,
			  const struct target_maps *now)
{
	const struct target_map *before;
	size_t i;

	for (i = 0; i < now->n; i++) {
		if (!is_first(now, i) || !is_object(a, t, &now->v[i]))
			continue;
		before = guest_map(was, now->v[i].start);
		if (!before || !before->is_exec || !same_file(before, &now->v[i]))
			return true;
	}
	return false;
}

bool guest_holds(const struct agents *a, const struct target *t, struct guest *g, struct target_maps *now, const char *status)
{
	uint64_t dev, ino;
	size_t i;

	program_of(t, &dev, &ino);
	if (!ino || dev != g->program_dev || ino != g->program_ino)
		return false;
	for (i = 0; i < GUEST_ANCHORS; i++) {
		const struct target_map *was, *is;

		if (!g->anchor[i])
			continue;
		was = guest_map(&g->maps, g->anchor[i]);
		is = guest_map(now, g->anchor[i]);
		if (!was || !is || was->start != is->start || was->end != is->end || was->off != is->off ||
		    was->is_exec != is->is_exec || !same_file(was, is))
			return false;
	}
	if (!g->entry && is_object_new(a, t, &g->maps, now))
		return false;
	g->sees_object = sees_object(agents_file_for(a, g->is_musl), t, status);	/* its user id may have changed */
	target_maps_fini(&g->maps);
	g->maps = *now;
	*now = (struct target_maps){ 0 };
	return true;
}
