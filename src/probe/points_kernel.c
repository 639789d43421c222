/*
 * Points implemented by the kernel's tracepoints: kernel.trace("..."), begin and end of processes and threads, and
 * their system calls.
 *
 * The begin of process("PATH") is a probe at the program's entry point, so not every exec of the system needs a
 * check; a process that runs already does not begin again, except by another exec.  When a process ends its program
 * is unmapped already, so its end is recognised by its id.
 */
#include "probe/points_priv.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <linux/magic.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/ktypes.h"

/* A flag of clone(2) among the arguments of task_newtask; struct members by ktypes.h. */
#define NEWTASK_FLAGS "1"
enum { CLONE_THREAD_FLAG = 0x10000 };

static struct ktypes *types(struct points_search *s)
{
	struct ktypes *k = set_ktypes(s->p->set);

	if (!k)
		s->why = "the kernel's type information (BTF), which tracepoints need, cannot be read";
	return k;
}

/*
 * The process of the point: the one that it names, or the target for a bare "process"; 0: any.  False: it names a
 * program.
 */
static bool process_of(struct points_search *s, uint32_t *pid)
{
	const struct stp_node *arg = s->point->comps[0].arg;

	*pid = 0;
	if (arg && arg->kind == STP_STR)
		return false;
	if (arg)
		*pid = (uint32_t)arg->value;
	else
		*pid = s->p->conf.held ? s->p->conf.held : s->p->conf.pid;
	return true;
}

static struct probe *add_tp(struct points_search *s, const struct stp_point *point, const struct ebpf_tp *tp,
			    uint32_t pid)
{
	struct probe key = { .kind = PROBE_TP, .mod = "vmlinux", .pid = pid };
	struct probe *probe = points_make(s->p, point, &key);

	if (!probe->tp) {
		probe->tp = arena_new_of(s->p->arena, struct ebpf_tp);
		*probe->tp = *tp;
		probe->sig.nargs = tp->nargs;
		for (unsigned int i = 0; i < tp->nargs; i++)
			probe->sig.args[i] = (struct probe_arg){ .size = tp->args[i].width, .sign = tp->args[i].sign };
	}
	points_add(s, point, probe);
	s->p->found[s->p->nfound - 1].tracepoint = tp->name;
	return probe;
}

static bool add_filter(const struct ktypes *k, struct ebpf_tp *tp, const char *value, uint32_t mask, uint32_t want,
		       bool differs)
{
	tp->filters[tp->nfilters].mask = mask;
	tp->filters[tp->nfilters].want = want;
	tp->filters[tp->nfilters].differs = differs;
	return ktypes_value(k, tp->name, value, &tp->filters[tp->nfilters++].value);
}

/* --- begin and end ------------------------------------------------------------------------------------ */

static void at_entry(struct points_search *s, const char *path)
{
	struct points_file *f = points_open(s->p, path);
	const struct obj_info *info;
	struct probe key = { .kind = PROBE_SITES, .pid = s->pid, .mod = f->path };
	struct site site = { .file = f->err ? NULL : obj_file(f->obj), .args_text = "" };
	struct stp_point *point;
	struct probe *probe;

	if (f->err) {
		s->why = f->why;
		return;
	}
	info = obj_info(f->obj);
	site.dev = info->dev;
	site.ino = info->ino;
	if (!info->entry || !obj_offset(f->obj, info->entry, true, &site.off)) {
		s->why = arena_printf(s->p->arena, "%s is a library, not a program", path);
		return;
	}
	point = points_copy(s->p, s->point);
	if (s->point->comps[0].arg && s->point->comps[0].arg->kind == STP_STR)
		points_set(s->p, point, "process", path);
	probe = points_make(s->p, point, &key);
	probe_add_site(s->p->set, probe, set_site(s->p->set, &site));
	points_add(s, point, probe);
}

/*
 * Limit a point to processes that run a certain program, by the inode of their file.  On file systems where the
 * device numbers of stat(2) are not the kernel's, the file's size is compared instead.
 */
static void of_program(struct points_search *s, const char *path)
{
	struct arena *a = s->p->arena;
	const char *file = arena_printf(a, "%s:task_struct.mm:mm_struct.exe_file:file.f_inode", s->task);
	struct ktypes *k = set_ktypes(s->p->set);
	struct ebpf_tp tp = *s->tp;
	const struct points_file *in = points_open(s->p, path);
	const struct stat *st = in->err ? NULL : &obj_file(in->obj)->st;
	struct stp_point *point;
	struct statfs fs;
	bool odd;

	if (!st || fstatfs(obj_file(in->obj)->fd, &fs)) {
		s->why = in->why ? in->why : "no match";
		return;
	}
	odd = fs.f_type == OVERLAYFS_SUPER_MAGIC || fs.f_type == BTRFS_SUPER_MAGIC;
	if (!add_filter(k, &tp, arena_printf(a, "%s:inode.i_ino", file), UINT32_MAX, (uint32_t)st->st_ino, false) ||
	    !add_filter(k, &tp, arena_printf(a, "%s:inode.%s", file, odd ? "i_size" : "i_sb:super_block.s_dev"), UINT32_MAX,
			odd ? (uint32_t)st->st_size : (uint32_t)(major(st->st_dev) << 20 | minor(st->st_dev)), false)) {
		s->why = "this kernel does not tell which program a process runs";
		return;
	}
	point = points_copy(s->p, s->point);
	points_set(s->p, point, "process", path);
	add_tp(s, point, &tp, 0);
}

/*
 * Add a probe at the tracepoint @tp: for process @pid, or (@named) for those that run the program that the point
 * names.
 */
static void add_of(struct points_search *s, struct ebpf_tp *tp, uint32_t pid, bool named)
{
	if (!named) {
		add_tp(s, s->point, tp, pid);
		return;
	}
	s->tp = tp;
	s->task = s->task ? s->task : "0";
	s->in_file = of_program;
	points_each_file(s);
}

void points_find_begin(struct points_search *s)
{
	struct ebpf_tp tp = { .name = "sched_process_exec" };
	const struct stp_node *arg = s->point->comps[0].arg;
	uint32_t pid;

	if ((arg && arg->kind == STP_STR) || (!arg && s->p->conf.held)) {
		s->in_file = at_entry;
		points_each_file(s);
	} else if (process_of(s, &pid) && types(s)) {
		add_tp(s, s->point, &tp, pid);
	}
}

void points_find_end(struct points_search *s, bool thread)
{
	struct ebpf_tp tp = { .name = "sched_process_exit" };
	struct ktypes *k;
	uint32_t pid;
	bool named = !process_of(s, &pid);

	k = types(s);
	if (!k)
		return;
	if (named && ktypes_args(k, tp.name, NULL) < 2) {
		s->why = "on this kernel the end of a process is known by its id alone: use process.end with -c or -x, or "
			 "process(PID).end";
		return;
	}
	/* Its second argument tells whether it is the last thread (Linux 6.16). */
	if (ktypes_args(k, tp.name, NULL) > 1)
		add_filter(k, &tp, "1", 1, !thread, false);
	else
		add_filter(k, &tp, "0:task_struct.signal:signal_struct.live.counter", 0, 0, thread);
	add_of(s, &tp, pid, named);
}

void points_find_thread(struct points_search *s)
{
	struct ebpf_tp tp = { .name = "task_newtask" };
	struct ktypes *k;
	uint8_t size;
	uint32_t pid;
	bool sign, named = !process_of(s, &pid);

	k = types(s);
	if (!k)
		return;
	add_filter(k, &tp, NEWTASK_FLAGS, CLONE_THREAD_FLAG, 0, true);
	if (!ktypes_value(k, tp.name, "0", &tp.task) ||
	    !ktypes_member(k, "task_struct.pid", &tp.task_pid, &size, &sign) ||
	    !ktypes_member(k, "task_struct.tgid", &tp.task_tgid, &size, &sign)) {
		s->why = "this kernel's struct task_struct is not known";
		return;
	}
	ktypes_member(k, "task_struct.comm", &tp.task_comm, &size, &sign);
	add_of(s, &tp, pid, named);
}

/* --- system calls ------------------------------------------------------------------------------------- */

/* Arguments of kernel.syscall: $arg1 to $arg6 are the provider's, and so is what the kernel returned; then the number. */
enum { SYSCALL_RETURNED = 2, SYSCALL_ARGS = 6 };

/* The set's probe for the provider's probe @of; all points for this system call share it. */
static struct probe *syscall_probe(struct points_search *s, const struct probe *of, struct stp_point **point)
{
	struct probe key = { .kind = PROBE_TP, .mod = "vmlinux", .func = of->func };
	struct probe *probe;

	*point = points_copy(s->p, s->point);
	points_set(s->p, *point, "syscall", of->func);
	probe = points_make(s->p, *point, &key);
	if (!probe->tp) {
		probe->tp = arena_new_of(s->p->arena, struct ebpf_tp);
		*probe->tp = *of->tp;
		probe->sig = of->sig;
	}
	return probe;
}

/* kernel.syscall("read"), or kernel.syscall: one point for all calls. */
static void find_in_kernel(struct points_search *s, bool at_return)
{
	const char *name = points_text(s->point, "syscall");
	struct probe_desc desc = { .prov = "syscall", .mod = "vmlinux", .func = name ? name : "",
				   .name = at_return ? "return" : "entry" };
	struct probe_list list = { 0 };
	size_t n = probe_find(s->p->set, &desc, PROBE_ENABLE, &list);
	struct probe **all = arena_alloc(s->p->arena, (n + 1) * sizeof(*all));

	for (size_t i = 0; i < n; i++) {
		struct stp_point *point;

		all[i] = syscall_probe(s, list.probes[i], &point);
		if (name)
			points_add(s, point, all[i]);
	}
	if (!n) {
		s->why = arena_printf(s->p->arena, "this machine has no system call '%s'", desc.func);
	} else if (!name) {
		points_add(s, s->point, all[0]);
		s->p->found[s->p->nfound - 1].probes = all;
		s->p->found[s->p->nfound - 1].nprobes = n;
	}
}

/* Add the values of a tracepoint for $syscall and the variables after it. */
static void add_values(const struct ktypes *k, struct ebpf_tp *tp, bool at_return)
{
	const struct arch *arch = arch_host();

	tp->nargs = 0;
	for (unsigned int i = 0; arch && i < (at_return ? 2 : 7); i++) {
		bool is_register = at_return != (i > 0);	/* the other is the number, or the result */
		const char *field = at_return ? arch->kept.syscall_field : i ? arch->kept.syscall_arg_fields[i - 1] : NULL;
		char text[64] = "1";

		if (is_register && !field)
			break;
		if (is_register)
			snprintf(text, sizeof(text), "0:pt_regs.%s", field);
		if (!ktypes_value(k, tp->name, text, &tp->args[i]))
			break;
		tp->nargs++;
	}
}

/* $syscall is argument 0; entry: $arg1 to $arg6 follow; return: $return follows. */
void points_find_syscall(struct points_search *s, bool at_return)
{
	struct ebpf_tp tp = { .name = at_return ? "sys_exit" : "sys_enter" };
	struct ktypes *k;
	uint32_t pid;
	bool named;

	if (!strcmp(s->point->comps[0].name, "kernel")) {
		find_in_kernel(s, at_return);
		return;
	}
	named = !process_of(s, &pid);
	s->task = "current";
	k = types(s);
	if (!k)
		return;
	add_values(k, &tp, at_return);
	add_of(s, &tp, pid, named);
}

/* All six, since it is not known which call it is. */
static bool syscall_parms(struct points *p, bool kernel, struct stp_source *source)
{
	static const char *names[] = { "$arg1", "$arg2", "$arg3", "$arg4", "$arg5", "$arg6" };
	struct stp_source *items = arena_alloc(p->arena, SYSCALL_ARGS * sizeof(*items));

	for (uint32_t i = 0; i < SYSCALL_ARGS; i++)
		items[i] = (struct stp_source){ .kind = STP_SRC_ARG, .type = STP_LONG, .arg = i + !kernel };
	*source = (struct stp_source){ .kind = STP_SRC_LIST, .type = STP_STRINGS, .names = names, .items = items,
				       .nnames = SYSCALL_ARGS };
	return true;
}

bool points_syscall_target(struct points *p, const struct stp_point *point, bool at_return, const struct stp_node *target,
			   struct stp_source *source, const char **why)
{
	bool kernel = !strcmp(point->comps[0].name, "kernel");
	const char *name = target->name;
	bool arg = !strncmp(name, "$arg", 4);

	if (!at_return && !strcmp(name, "$$parms") && !target->nparts)
		return syscall_parms(p, kernel, source);
	if (target->nparts || target->pretty || target->addressed) {
		*why = arena_printf(p->arena, "utrace variable '%s' may not be %s", name,
				    target->nparts ? "used as a structure" : target->pretty ? "pretty-printed" : "addressed");
		return false;
	}
	if (!strcmp(name, "$syscall")) {
		source->arg = !kernel ? 0 : at_return ? EBPF_TP_EXIT_NUMBER : EBPF_TP_ENTRY_NUMBER;
	} else if (at_return && !strcmp(name, "$return")) {
		source->arg = kernel ? SYSCALL_RETURNED : 1;
	} else if (!at_return && arg && name[4] >= '1' && name[4] < '1' + SYSCALL_ARGS && !name[5]) {
		source->arg = (uint32_t)(name[4] - '0') - kernel;
	} else {
		*why = arena_printf(p->arena, "the point has %s%s", kernel ? "" : "$syscall and ",
				    at_return ? "$return" : "$arg1 to $arg6");
		return false;
	}
	source->kind = STP_SRC_ARG;
	source->type = STP_LONG;
	source->readonly = arena_printf(p->arena, "utrace '%s' variable is read-only", arg ? "$argN" : name);
	return true;
}

/* --- kernel.trace ------------------------------------------------------------------------------------- */

static void add_tracepoint(void *ctx, const char *name)
{
	struct points_search *s = ctx;
	struct ktypes *k = set_ktypes(s->p->set);
	struct ebpf_tp tp = { .name = name };
	struct stp_point *point;
	struct probe_sig sig;

	if (fnmatch(s->name, name, 0) || ktypes_args(k, name, &sig) < 0)
		return;
	tp.name = arena_strdup(s->p->arena, name);
	tp.nargs = sig.nargs;
	for (unsigned int i = 0; i < sig.nargs; i++)
		tp.args[i] = (struct ebpf_tp_value){ .kind = EBPF_TP_VALUE, .word = (uint8_t)i,
						     .width = sig.args[i].size, .sign = sig.args[i].sign };
	point = points_copy(s->p, s->point);
	points_set(s->p, point, "trace", name);
	add_tp(s, point, &tp, 0);
}

void points_find_trace(struct points_search *s)
{
	const char *name = points_text(s->point, "trace"), *colon = strchr(name, ':');
	struct ktypes *k = types(s);

	if (!k)
		return;
	s->name = colon ? colon + 1 : name;	/* the subsystem in front is not in the type information */
	if (strpbrk(s->name, "*?["))
		ktypes_each(k, add_tracepoint, s);
	else
		add_tracepoint(s, s->name);
	if (!s->n)
		s->why = "no match";
}

/* The name of argument @i: $prev, or $arg2. */
static const char *arg_name(const struct points *p, const char *tracepoint, unsigned int i)
{
	const char *name = ktypes_arg_name(set_ktypes(p->set), tracepoint, i);

	return name && *name ? arena_printf(p->arena, "$%s", name) : arena_printf(p->arena, "$arg%u", i + 1);
}

/* The number of the tracepoint's argument @name, or -1. */
static int arg_number(const struct ktypes *k, const char *tracepoint, const char *name)
{
	const char *one;

	for (unsigned int i = 0; (one = ktypes_arg_name(k, tracepoint, i)); i++)
		if (!strcmp(one, name))
			return (int)i;
	/* By number, for kernels without names of arguments. */
	if (!strncmp(name, "arg", 3) && name[3] >= '1' && name[3] <= '9' && !name[4] &&
	    name[3] - '0' <= ktypes_args(k, tracepoint, NULL))
		return name[3] - '1';
	return -1;
}

static bool list_args(struct points *p, const struct points_found *f, struct stp_source *source)
{
	unsigned int n = f->probe->sig.nargs;
	struct stp_source *items = arena_alloc(p->arena, (n + 1) * sizeof(*items));

	source->kind = STP_SRC_LIST;
	source->type = STP_STRINGS;
	source->names = arena_alloc(p->arena, (n + 1) * sizeof(*source->names));
	source->items = items;
	source->nnames = n;
	for (unsigned int i = 0; i < n; i++) {
		source->names[i] = arg_name(p, f->tracepoint, i);
		items[i] = (struct stp_source){ .kind = STP_SRC_ARG, .type = STP_LONG, .arg = i };
	}
	return true;
}

/* Add steps to @source for the members that @n names, from a value of the kernel's type @type on. */
static bool walk(struct points *p, uint32_t type, const struct stp_node *n, struct stp_source *source, const char **why)
{
	struct ktypes_step steps[STP_MAX_STEPS];
	const char *names[STP_MAX_STEPS];
	bool string = false;
	uint32_t target = 0;
	int nsteps;

	if (n->nparts > STP_MAX_STEPS) {
		*why = "too many members: keep one between in a variable";
		return false;
	}
	for (size_t i = 0; i < n->nparts; i++)
		names[i] = n->parts[i].name;
	nsteps = ktypes_walk(set_ktypes(p->set), type, names, n->nparts, steps, STP_MAX_STEPS, &string, &target);
	if (nsteps < 0) {
		*why = "the kernel's type information has no such members";
		return false;
	}
	if (n->addressed && nsteps) {
		steps[nsteps - 1].width = 0;
		target = 0;
	}
	if (n->pretty && !string) {
		*why = "structures of the kernel are not printed whole: name the members";
		return false;
	}
	source->type = n->pretty ? STP_STRINGS : STP_LONG;
	source->nsteps = (unsigned int)nsteps;
	source->target = target ? points_kernel_target(p, target) : NULL;
	for (int i = 0; i < nsteps; i++)
		source->steps[i] = (struct stp_step){ .off = steps[i].off, .scale = steps[i].scale,
						      .index = steps[i].element ? n->parts[steps[i].element - 1].index : NULL,
						      .width = steps[i].width, .sign = steps[i].sign, .kernel = true };
	return true;
}

bool points_trace_target(struct points *p, const struct points_found *f, const struct stp_node *target,
			 struct stp_source *source, const char **why)
{
	struct ktypes *k = set_ktypes(p->set);
	int arg;

	if (!strcmp(target->name, "$$vars") || !strcmp(target->name, "$$parms"))
		return list_args(p, f, source);
	if (!strcmp(target->name, "$$name")) {
		source->kind = STP_SRC_TEXT;
		source->type = STP_STRINGS;
		source->text = f->tracepoint;
		return true;
	}
	arg = arg_number(k, f->tracepoint, target->name + 1);
	if (arg < 0) {
		*why = arena_printf(p->arena, "the tracepoint %s has no argument of that name", f->tracepoint);
		return false;
	}
	source->kind = STP_SRC_ARG;
	source->arg = (uint32_t)arg;
	return walk(p, ktypes_arg_type(k, f->tracepoint, (unsigned int)arg), target, source, why);
}

/* Does @cast's module name the kernel: "kernel", "kernel<linux/sched.h>", "vmlinux"? */
bool points_is_kernel(const char *module)
{
	return module && (!strcmp(module, "kernel") || !strncmp(module, "kernel<", 7) || !strcmp(module, "vmlinux"));
}

bool points_kernel_cast(struct points *p, const struct stp_node *cast, const char *type, struct stp_source *source,
			const char **why)
{
	struct ktypes *k = set_ktypes(p->set);
	uint32_t id;

	source->kind = STP_SRC_VALUE;
	if (!k) {
		*why = "the kernel's type information (BTF) cannot be read";
		return false;
	}
	id = ktypes_find(k, type);
	if (!id) {
		*why = arena_printf(p->arena, "type definition '%s' not found in the kernel's type information", type);
		return false;
	}
	if (!walk(p, id, cast, source, why))
		return false;
	if (!cast->nparts)
		source->target = points_kernel_target(p, id);
	return true;
}

bool points_kernel_deref(struct points *p, uint32_t type, const struct stp_node *deref, struct stp_source *source,
			 const char **why)
{
	source->kind = STP_SRC_VALUE;
	return walk(p, type, deref, source, why);
}

void points_trace_vars(const struct points *p, const struct points_found *f, struct strbuf *out)
{
	for (unsigned int i = 0; i < f->probe->sig.nargs; i++)
		strbuf_printf(out, " %s:long", arg_name(p, f->tracepoint, i));
}
