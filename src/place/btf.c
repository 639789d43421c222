#include "place/btf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "base/strbuf.h"

/* Find member @name of structure @type, also in anonymous members: its byte offset, and its type in *of. */
static int find_member(const struct btf *btf, uint32_t type, const char *name, uint32_t *off, uint32_t *of)
{
	const struct btf_type *t = btf__type_by_id(btf, type);
	const struct btf_member *m = btf_members(t);
	uint32_t inner;
	int i;

	for (i = 0; i < btf_vlen(t); i++) {
		const char *is = btf__name_by_offset(btf, m[i].name_off);
		int32_t id = btf__resolve_type(btf, m[i].type);

		if (!*is && id > 0 && btf_is_composite(btf__type_by_id(btf, (uint32_t)id))) {
			if (!find_member(btf, (uint32_t)id, name, &inner, of)) {
				*off = btf_member_bit_offset(t, (uint32_t)i) / 8 + inner;
				return 0;
			}
		} else if (!strcmp(is, name)) {
			*off = btf_member_bit_offset(t, (uint32_t)i) / 8;
			*of = id > 0 ? (uint32_t)id : 0;
			return 0;
		}
	}
	return -ENOENT;
}

/* Follow @path (abi/task.def) from structure @type. */
static int find_path(const struct btf *btf, uint32_t type, const char *path, struct ebpf_task_path *ret)
{
	uint32_t off = 0, base = 0;
	char name[32];
	size_t len;
	int e;

	if (!*path) {
		ret->n = 1;
		return 0;
	}
	for (;;) {
		const struct btf_type *t;
		int32_t id;

		len = strcspn(path, "-[.");
		if (len >= sizeof(name) || ret->n == sizeof(ret->off) / sizeof(*ret->off))
			return -EINVAL;
		memcpy(name, path, len);
		name[len] = '\0';
		e = find_member(btf, type, name, &off, &type);
		if (e)
			return e;
		path += len;
		off += base;
		if (*path == '.') {	/* an embedded structure */
			base = off;
			path++;
			continue;
		}
		base = 0;
		if (*path == '[')	/* an array of pointers */
			off += 8 * (uint32_t)strtoul(path + 1, NULL, 10);
		ret->off[ret->n++] = off;
		if (strncmp(path, "->", 2))
			return 0;
		t = btf__type_by_id(btf, type);
		id = t && btf_is_ptr(t) ? btf__resolve_type(btf, t->type) : -1;
		if (id <= 0 || !btf_is_composite(btf__type_by_id(btf, (uint32_t)id)))
			return -ENOENT;
		type = (uint32_t)id;
		path += 2;
	}
}

static int find_in(const struct btf *btf, const char *name, const char *member, uint32_t *off)
{
	int type = btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT);
	uint32_t of;

	return type < 0 ? type : find_member(btf, (uint32_t)type, member, off, &of);
}

#define NR EBPF_TASK_NR
#define ADDR EBPF_TASK_ADDR

static void find_facts(const struct btf *btf, uint32_t task, struct ebpf_tasks *ret)
{
	static const struct { const char *path; uint8_t kind; } facts[ABI_TASK_MAX] = {
#define ABI_TASK(NAME, path, kind, own) { path, kind },
#include "abi/task.def"
#undef ABI_TASK
	};
	int pid = btf__find_by_name_kind(btf, "pid", BTF_KIND_STRUCT);
	int number = btf__find_by_name_kind(btf, "upid", BTF_KIND_STRUCT);
	bool numbers = pid > 0 && number > 0;
	uint32_t type, inum = 0;

	if (numbers) {
		ret->number_size = (uint32_t)btf__resolve_size(btf, (uint32_t)number);
		numbers = !find_member(btf, (uint32_t)pid, "level", &ret->pid_level, &type) &&
			  !find_member(btf, (uint32_t)pid, "numbers", &ret->pid_numbers, &type) &&
			  !find_member(btf, (uint32_t)number, "ns", &ret->number_ns, &type) &&
			  !find_in(btf, "pid_namespace", "ns", &ret->ns_inum) &&
			  !find_in(btf, "ns_common", "inum", &inum);
		ret->ns_inum += inum;
	}
	for (int i = 0; i < ABI_TASK_MAX; i++) {
		struct ebpf_task_path *p = &ret->facts[i];

		p->kind = facts[i].kind;
		if (find_path(btf, task, facts[i].path, p) || (p->kind == EBPF_TASK_NR && !numbers))
			p->n = 0;
	}
}

/* The path from struct mm_struct to the file that the process executes. */
static int find_exe(const struct btf *btf, uint32_t mm, struct btf_task *ret)
{
	uint32_t type;
	int e = find_member(btf, mm, "exe_file", &ret->exe_file, &type);

	if (!e)
		e = find_in(btf, "file", "f_inode", &ret->f_inode);
	if (!e)
		e = find_in(btf, "inode", "i_ino", &ret->i_ino);
	if (!e)
		e = find_in(btf, "inode", "i_sb", &ret->i_sb);
	if (!e)
		e = find_in(btf, "super_block", "s_dev", &ret->s_dev);
	return e;
}

/* Where the kernel keeps a thread's thread pointer (the register for thread-local storage). */
static void find_tls(const struct btf *btf, uint32_t task, struct btf_task *ret)
{
	uint32_t thread, off, type;

	if (find_member(btf, task, "thread", &thread, &type))
		return;
#if defined(__x86_64__)
	if (!find_member(btf, type, "fsbase", &off, &type))
		ret->tls = thread + off;
#elif defined(__aarch64__)
	uint32_t uw;

	if (!find_member(btf, type, "uw", &uw, &type) && !find_member(btf, type, "tp_value", &off, &type))
		ret->tls = thread + uw + off;
#endif
}

/*
 * The counts of switches, the time of the last one, and the path from struct sched_entity, at @se in struct task_struct, to the clocks of its
 * CPU.
 */
static void find_clocks(const struct btf *btf, uint32_t task, uint32_t se, uint32_t se_type, struct btf_task *ret)
{
	uint32_t info, off, type;

	if (!find_member(btf, task, "nvcsw", &off, &type))
		ret->nvcsw = off;
	if (!find_member(btf, task, "nivcsw", &off, &type))
		ret->nivcsw = off;
	if (!find_member(btf, task, "sched_info", &info, &type) && !find_member(btf, type, "last_arrival", &off, &type))
		ret->last_arrival = info + off;
	if (!find_member(btf, se_type, "cfs_rq", &off, &type) && !find_in(btf, "cfs_rq", "rq", &ret->rq) &&
	    !find_in(btf, "rq", "clock", &ret->clock) && !find_in(btf, "rq", "clock_task", &ret->clock_task))
		ret->cfs_rq = se + off;
}

static void find_paths(const struct btf *btf, uint32_t task, struct ebpf_paths *ret)
{
	const struct { const char *in, *name; uint32_t *off; } facts[] = {
		{ "fs_struct", "pwd", &ret->pwd }, { "fs_struct", "root", &ret->root },
		{ "path", "mnt", &ret->path_mnt }, { "path", "dentry", &ret->path_dentry },
		{ "dentry", "d_parent", &ret->parent }, { "dentry", "d_name", &ret->name },
		{ "vfsmount", "mnt_root", &ret->mnt_root }, { "mount", "mnt", &ret->mount_mnt },
		{ "mount", "mnt_parent", &ret->mount_parent }, { "mount", "mnt_mountpoint", &ret->mountpoint },
	};
	uint32_t off, type;

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (find_in(btf, facts[i].in, facts[i].name, facts[i].off))
			return;
	if (find_in(btf, "qstr", "name", &off) || find_member(btf, task, "fs", &ret->fs, &type))
		return;
	ret->name += off;
}

/* Where the kernel keeps the original return addresses that uretprobes have replaced; needs a kernel with uprobes. */
static void find_returns(const struct btf *btf, uint32_t task, struct ebpf_returns *ret)
{
	uint32_t type, first;

	if (!find_member(btf, task, "utask", &ret->utask, &type) &&
	    !find_in(btf, "uprobe_task", "return_instances", &first) &&
	    !find_in(btf, "return_instance", "next", &ret->next) &&
	    !find_in(btf, "return_instance", "stack", &ret->slot) &&
	    !find_in(btf, "return_instance", "orig_ret_vaddr", &ret->address))
		ret->first = first;
}

#define NEEDING "ppid, vtimestamp, execargs, cwd, root, frames of Python and points of one program"

int btf_task(struct btf_task *ret, struct strbuf *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	uint32_t se, se_type, off, type;
	int task, mm, e;

	*ret = (struct btf_task){ 0 };
	if (!btf) {
		e = -errno;
		strbuf_printf(err, NEEDING " need the kernel's type information (/sys/kernel/btf/vmlinux,"
			      " CONFIG_DEBUG_INFO_BTF): %s", strerror(-e));
		return e;
	}
	task = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	e = task < 0 ? task : 0;
	if (!e)
		e = find_member(btf, (uint32_t)task, "real_parent", &ret->real_parent, &type);
	if (!e)
		e = find_member(btf, (uint32_t)task, "tgid", &ret->tgid, &type);
	if (!e)
		e = find_member(btf, (uint32_t)task, "se", &se, &se_type);
	if (!e)
		e = find_member(btf, se_type, "sum_exec_runtime", &off, &type);
	if (!e) {
		ret->sum_exec_runtime = se + off;
		e = find_member(btf, se_type, "exec_start", &off, &type);
		ret->exec_start = se + off;
	}
	mm = btf__find_by_name_kind(btf, "mm_struct", BTF_KIND_STRUCT);
	if (!e)
		e = mm < 0 ? mm : find_member(btf, (uint32_t)task, "mm", &ret->mm, &type);
	if (!e)
		e = find_member(btf, (uint32_t)mm, "arg_start", &ret->arg_start, &type);
	if (!e)
		e = find_member(btf, (uint32_t)mm, "arg_end", &ret->arg_end, &type);
	if (!e)
		e = find_exe(btf, (uint32_t)mm, ret);
	if (!e)
		e = find_member(btf, (uint32_t)mm, "start_code", &ret->start_code, &type);
	if (!e)
		e = find_member(btf, (uint32_t)mm, "start_stack", &ret->start_stack, &type);
	if (!e)
		find_clocks(btf, (uint32_t)task, se, se_type, ret);
	if (!e)
		find_paths(btf, (uint32_t)task, &ret->paths);
	if (!e)
		find_tls(btf, (uint32_t)task, ret);
	if (!e)
		find_returns(btf, (uint32_t)task, &ret->returns);
	if (!e)
		find_facts(btf, (uint32_t)task, &ret->tasks);
	if (e)
		strbuf_puts(err, "this kernel's struct task_struct is not what " NEEDING " need");
	btf__free(btf);
	return e;
}
