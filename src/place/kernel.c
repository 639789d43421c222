#include "place/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>

#include "base/parallel.h"
#include "base/strbuf.h"
#include "place/func_info.h"

/* Since 6.6 in linux/bpf.h, which Debian 12's headers precede: enum bpf_attach_type, and the arm of union
 * bpf_attr that BPF_LINK_CREATE takes for it. */
enum { ATTACH_UPROBE_MULTI = 48, UPROBE_MULTI_RETURN = 1 };

struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};
_Static_assert(sizeof(struct uprobe_multi_attr) == 64, "link_create.uprobe_multi of union bpf_attr");

enum { NR_OPEN = 1 << 20 };	/* what fs.nr_open is, mostly: more descriptors a process cannot have */

static const char license[] = "Dual MIT/GPL";

struct kernel_prog {
	const struct ebpf_prog *prog;
	int fd;
	bool multi;
};

/* What this kernel can do, found out by asking it. */
struct kernel_features {
	bool uprobe_multi;	/* one link for many sites (6.6) */
	bool multi_pid;		/* whose pid filter means the process, not its first thread (6.10) */
	bool sleepable;		/* uprobe programs that may fault pages in (6.0) */
	atomic_bool globals;	/* functions that are looked at once, whatever their callers (6.17); true: not refused yet */
};

struct kernel_place {
	struct place place;
	const struct ebpf_unit *unit;
	struct kernel_features features;
	int *map_fds;			/* -1: not created */
	unsigned int ncpus;		/* possible ones */
	struct abi_control *control;
	void *memory;			/* of the one map that somebody asked for */
	size_t memory_size;
	struct ring_buffer *ring;
	int (*record)(void *ctx, const void *rec, size_t size);		/* during kernel_drain */
	void *record_ctx;
	pthread_mutex_t lock;		/* of progs and links, while several threads load and arm */
	struct kernel_prog *progs;
	size_t nprogs, progs_cap;
	int *links;			/* links and perf events, closed to detach */
	size_t nlinks, links_cap;
	atomic_size_t skipped;		/* sites that the kernel refused */
	atomic_bool tracepoints;	/* some are armed */
	atomic_bool descriptors_allowed;	/* RLIMIT_NOFILE is as high as it can be */
};

static struct kernel_place *of(struct place *place)
{
	return (struct kernel_place *)place;
}

/* --- what the kernel allows --------------------------------------------------------------------------- */

static int read_setting(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* Since 6.9 in linux/bpf.h: BPF_JMP | BPF_JCOND. */
enum { MAY_GOTO = BPF_JMP | 0xe0 };

/* Does the kernel know the instruction that loops need? */
static bool knows_may_goto(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = MAY_GOTO },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "dtap_ask", license, insns, 3, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Load "return 0" of a type: a descriptor or a negative errno. */
static int load_trivial(enum bpf_prog_type type, int attach, uint32_t flags)
{
	static const struct bpf_insn ret0[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)attach, .prog_flags = flags);
	int fd = bpf_prog_load(type, "dtap_ask", license, ret0, 2, &opts);

	return fd < 0 ? -errno : fd;
}

/* Since 5.11 BPF memory is charged to the memory cgroup, before that to this limit.  It may be refused in a
 * container that otherwise allows BPF: then what is there must do. */
static void raise_memlock(void)
{
	struct rlimit lim = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &lim);
}

int kernel_available(struct strbuf *err)
{
	char buf[32];
	int fd;

	fd = load_trivial(BPF_PROG_TYPE_KPROBE, 0, 0);
	if (fd == -ENOSYS) {
		strbuf_puts(err, "this kernel was built without BPF (CONFIG_BPF_SYSCALL)");
		return fd;
	}
	if (fd == -EPERM || fd == -EACCES) {
		if (geteuid() != 0)
			strbuf_puts(err, "tracing needs the capabilities CAP_BPF and CAP_PERFMON, which this user"
					 " does not have: run it as root, for instance with sudo");
		else
			strbuf_puts(err, "the kernel refuses BPF although this is root: CAP_BPF and CAP_PERFMON"
					 " (or CAP_SYS_ADMIN) are missing here, as in a container; give them to it,"
					 " or trace from outside");
		return fd;
	}
	if (fd < 0) {
		strbuf_printf(err, "the kernel refuses BPF programs: %s", strerror(-fd));
		return fd;
	}
	close(fd);
	if (read_setting("/sys/bus/event_source/devices/uprobe/type", buf, sizeof(buf))) {
		strbuf_puts(err, "this kernel has no uprobes (CONFIG_UPROBE_EVENTS), or /sys is not mounted");
		return -ENOTSUP;
	}
	return 0;
}

/*
 * Programs of this attach type load on kernels that have no such links (Linux 6.1), too.  A kernel that has them looks at
 * the path, and does not like a directory.
 */
static bool knows_uprobe_multi(void)
{
	struct uprobe_multi_attr attr = { .attach_type = ATTACH_UPROBE_MULTI, .path = (uintptr_t)"/", .cnt = 1 };
	uint64_t off = 0;
	int fd, link;
	bool knows;

	fd = load_trivial(BPF_PROG_TYPE_KPROBE, ATTACH_UPROBE_MULTI, 0);
	if (fd < 0)
		return false;
	attr.prog_fd = (uint32_t)fd;
	attr.offsets = (uintptr_t)&off;
	link = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	knows = link < 0 && errno == EBADF;
	if (link >= 0)
		close(link);
	close(fd);
	return knows;
}

static void find_features(struct kernel_features *f)
{
	unsigned int major = 0, minor = 0;
	struct utsname uts;
	int fd;

	f->uprobe_multi = knows_uprobe_multi();
	fd = load_trivial(BPF_PROG_TYPE_KPROBE, 0, BPF_F_SLEEPABLE);
	if (fd >= 0) {
		f->sleepable = true;
		close(fd);
	}
	f->globals = true;
	/* Before 46ba0e49b642 (6.10) the filter compared threads; nothing but the version tells. */
	if (!uname(&uts) && sscanf(uts.release, "%u.%u", &major, &minor) == 2)
		f->multi_pid = f->uprobe_multi && (major > 6 || (major == 6 && minor >= 10));
}

/* --- maps --------------------------------------------------------------------------------------------- */

/*
 * A program can get little memory for one value of all CPUs at once: a burst of new keys with long values (quantize()
 * has 1 kB) finds none until the kernel's worker has made some.  Ordinary memory it can get, so such values are shared
 * by all CPUs; programs change them with atomic operations anyway.
 */
enum { PERCPU_HASH_VALUE_MAX = 256 };

static enum bpf_map_type type_of(const struct ebpf_map *m)
{
	return m->type == BPF_MAP_TYPE_PERCPU_HASH && m->value_size > PERCPU_HASH_VALUE_MAX ? BPF_MAP_TYPE_HASH : m->type;
}

static int create_map(struct kernel_place *k, uint32_t number, struct strbuf *err)
{
	const struct ebpf_map *m = &k->unit->maps[number];
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = m->map_flags);
	uint32_t zero = 0;
	int fd;

	if (m->type == BPF_MAP_TYPE_UNSPEC || number == EBPF_MAP_CALLS)
		return 0;
	fd = bpf_map_create(type_of(m), m->name, m->key_size, m->value_size, m->max_entries, &opts);
	if (fd < 0) {
		fd = -errno;
		strbuf_printf(err, "cannot create the BPF map %s (%u entries of %u bytes): %s", m->name,
			      m->max_entries, m->key_size + m->value_size, strerror(-fd));
		return fd;
	}
	k->map_fds[number] = fd;
	if (m->init) {
		if (bpf_map_update_elem(fd, &zero, m->init, BPF_ANY) ||
		    (number == EBPF_MAP_RODATA && bpf_map_freeze(fd))) {
			int e = -errno;

			strbuf_printf(err, "cannot fill the BPF map %s: %s", m->name, strerror(-e));
			return e;
		}
	}
	return 0;
}

static int ring_record(void *ctx, void *data, size_t size)
{
	struct kernel_place *k = ctx;

	return k->record(k->record_ctx, data, size);
}

static void close_link(void *place, size_t i)
{
	close(of(place)->links[i]);
}

static void disarm(struct place *place)
{
	struct kernel_place *k = of(place);

	/* The last close of a link detaches and waits for the programs under way: some 50 ms, in which others can. */
	parallel_each(k->nlinks, close_link, place);
	k->nlinks = 0;
	/* But not that of a tracepoint.  This waits until every CPU has left what it was running. */
	if (k->tracepoints)
		syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	k->tracepoints = false;
}

static void free_place(struct place *place)
{
	struct kernel_place *k = of(place);
	size_t i;

	disarm(place);
	for (i = 0; i < k->nprogs; i++)
		close(k->progs[i].fd);
	ring_buffer__free(k->ring);
	if (k->control)
		munmap(k->control, sizeof(*k->control));
	if (k->memory)
		munmap(k->memory, k->memory_size);
	if (k->map_fds)
		for (i = 0; i < k->unit->nmaps; i++)
			if (k->map_fds[i] >= 0)
				close(k->map_fds[i]);
	free(k->map_fds);
	free(k->progs);
	free(k->links);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static struct abi_control *control(struct place *place)
{
	struct kernel_place *k = of(place);

	return k->control;
}

static int set_probe(struct place *place, uint32_t index, const struct abi_probe *probe)
{
	struct kernel_place *k = of(place);
	int fd = k->map_fds[EBPF_MAP_PROBES];

	if (fd < 0)
		return 0;
	return bpf_map_update_elem(fd, &index, probe, BPF_ANY) ? -errno : 0;
}

/* --- loading ------------------------------------------------------------------------------------------ */

/* The instruction that the verifier looked at last: the log ends with "12: (85) call ..." and a complaint. */
static uint32_t last_insn(const char *log)
{
	uint32_t insn = 0;
	const char *p = log;
	char *end;

	while (p && *p) {
		unsigned long n = strtoul(p, &end, 10);

		if (end != p && end[0] == ':' && end[1] == ' ' && end[2] == '(')
			insn = (uint32_t)n;
		p = strchr(p, '\n');
		if (p)
			p++;
	}
	return insn;
}

/* The verifier's complaint: its last line before the statistics. */
static void complaint(const char *log, struct strbuf *out)
{
	const char *p = log, *found = "no reason given", *nl;
	size_t len = strlen(found);

	for (; *p; p = nl + 1) {
		nl = strchr(p, '\n');
		if (!nl)
			break;
		if (nl > p && strncmp(p, "processed ", 10) && strncmp(p, "verification time", 17) &&
		    strncmp(p, "stack depth", 11)) {
			found = p;
			len = (size_t)(nl - p);
		}
	}
	strbuf_add(out, found, len);
}

static int try_load(const struct kernel_prog *kp, const struct bpf_insn *insns, const struct func_info *funcs,
		    char *log, size_t log_size)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)(kp->multi ? ATTACH_UPROBE_MULTI : 0),
		    .prog_flags = kp->prog->sleepable ? BPF_F_SLEEPABLE : 0,
		    .prog_btf_fd = funcs->btf_fd >= 0 ? (uint32_t)funcs->btf_fd : 0,
		    .func_info = funcs->v, .func_info_cnt = funcs->n, .func_info_rec_size = sizeof(*funcs->v),
		    .log_buf = log, .log_size = (uint32_t)log_size, .log_level = log ? 1 : 0);
	int fd = bpf_prog_load(kp->prog->type, "dtap", license, insns, kp->prog->ninsns, &opts);

	return fd < 0 ? -errno : fd;
}

/* The kernel refused: ask again for its log, and say where in the script it is. */
static void explain_refusal(const struct kernel_prog *kp, const struct bpf_insn *insns,
			    const struct func_info *funcs, int refusal, struct strbuf *err, struct strbuf *log)
{
	const size_t size = 16 << 20;
	const struct ebpf_line *line;
	char *buf;

	strbuf_puts(err, "the kernel refused the program");
	buf = refusal == -EPERM ? NULL : malloc(size);
	if (!buf) {
		strbuf_printf(err, ": %s", strerror(-refusal));
		return;
	}
	buf[0] = '\0';
	try_load(kp, insns, funcs, buf, size);
	buf[size - 1] = '\0';
	line = ebpf_line_find(kp->prog, last_insn(buf));
	if (line && line->pos.src && line->pos.line)
		strbuf_printf(err, " for clause %u (%s:%u:%u)", line->clause + 1, line->pos.src->name,
			      line->pos.line, line->pos.col);
	else if (line)
		strbuf_printf(err, " for clause %u", line->clause + 1);
	strbuf_puts(err, ": ");
	if (*buf)
		complaint(buf, err);
	else
		strbuf_puts(err, strerror(-refusal));
	strbuf_puts(err, " (-x verifierlog shows the verifier's log)");
	if (log)
		strbuf_puts(log, buf);
	free(buf);
}

/* Load @kp with functions that are global, or with static ones. */
static int load_as(struct kernel_prog *kp, const struct bpf_insn *insns, bool globals, bool explain, struct strbuf *err,
		   struct strbuf *log)
{
	const struct ebpf_prog *prog = kp->prog;
	struct func_info funcs;
	int fd;

	fd = func_info_make(insns, prog->ninsns, prog->funcs, globals ? prog->nfuncs : 0, &funcs);
	if (fd < 0) {
		if (explain)
			strbuf_printf(err, "the kernel refuses type information (BTF): %s", strerror(-fd));
		return fd;
	}
	fd = try_load(kp, insns, &funcs, NULL, 0);
	if (fd < 0 && explain)
		explain_refusal(kp, insns, &funcs, fd, err, log);
	func_info_fini(&funcs);
	return fd;
}

/* Take over the descriptor of a loaded program: its handle.  On failure it is closed. */
static int keep_prog(struct kernel_place *k, const struct kernel_prog *kp)
{
	size_t cap = k->progs_cap ? k->progs_cap * 2 : 8;
	struct kernel_prog *p;
	int handle = -ENOMEM;

	pthread_mutex_lock(&k->lock);
	if (k->nprogs == k->progs_cap) {
		p = realloc(k->progs, cap * sizeof(*p));
		if (!p)
			goto out;
		k->progs = p;
		k->progs_cap = cap;
	}
	handle = (int)k->nprogs++;
	k->progs[handle] = *kp;
out:
	pthread_mutex_unlock(&k->lock);
	if (handle < 0)
		close(kp->fd);
	return handle;
}

static struct kernel_prog prog_of(struct kernel_place *k, int handle)
{
	struct kernel_prog kp;

	pthread_mutex_lock(&k->lock);
	kp = k->progs[handle];
	pthread_mutex_unlock(&k->lock);
	return kp;
}

static int load(struct place *place, const struct ebpf_prog *prog, bool multi, struct strbuf *err, struct strbuf *log)
{
	struct kernel_place *k = of(place);
	struct kernel_prog kp = { .prog = prog, .multi = multi };
	struct bpf_insn *insns = malloc(prog->ninsns * sizeof(*insns));
	uint32_t i;
	int fd, calls = -1;

	if (!insns)
		goto no_memory;
	memcpy(insns, prog->insns, prog->ninsns * sizeof(*insns));
	for (i = 0; i < prog->nrelocs; i++) {
		fd = k->map_fds[prog->relocs[i].map];
		if (prog->relocs[i].map == EBPF_MAP_CALLS)
			fd = calls = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "calls", 4, 4, 1, NULL);
		insns[prog->relocs[i].insn].imm = fd;
	}
	fd = -EINVAL;
	if (prog->nfuncs && k->features.globals)
		fd = load_as(&kp, insns, true, false, err, log);
	if (fd < 0) {
		fd = load_as(&kp, insns, false, true, err, log);
		/* What an older kernel takes so it would refuse otherwise each time. */
		if (fd >= 0 && prog->nfuncs)
			k->features.globals = false;
	}
	if (calls >= 0)
		close(calls);
	free(insns);
	if (fd < 0)
		return fd;
	kp.fd = fd;
	fd = keep_prog(k, &kp);
	if (fd >= 0)
		return fd;
no_memory:
	strbuf_puts(err, "out of memory");
	return -ENOMEM;
}

/* --- arming ------------------------------------------------------------------------------------------- */

/* Take over the descriptor of a link.  On failure it is closed. */
static int keep_link(struct kernel_place *k, int fd)
{
	size_t cap = k->links_cap ? k->links_cap * 2 : 16;
	int e = -ENOMEM, *p;

	pthread_mutex_lock(&k->lock);
	if (k->nlinks == k->links_cap) {
		p = realloc(k->links, cap * sizeof(*p));
		if (!p)
			goto out;
		k->links = p;
		k->links_cap = cap;
	}
	k->links[k->nlinks++] = fd;
	e = 0;
out:
	pthread_mutex_unlock(&k->lock);
	if (e)
		close(fd);
	return e;
}

static bool use_multi(const struct place *place, uint32_t pid)
{
	const struct kernel_place *k = (const struct kernel_place *)place;

	return pid ? k->features.multi_pid : k->features.uprobe_multi;
}

/* Arm the @n sites, all of one file and of one kind, with one link. */
static int arm_multi(struct kernel_place *k, int prog_fd, const struct place_site *sites, size_t n, uint32_t pid)
{
	uint64_t *v = malloc(3 * n * sizeof(*v));
	struct uprobe_multi_attr attr;
	bool has_sem = false;
	size_t i;
	int fd;

	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		v[i] = sites[i].off;
		v[n + i] = sites[i].sem_off;
		v[2 * n + i] = sites[i].probe;
		has_sem |= sites[i].sem_off != 0;
	}
	memset(&attr, 0, sizeof(attr));
	attr.prog_fd = (uint32_t)prog_fd;
	attr.attach_type = ATTACH_UPROBE_MULTI;
	attr.path = (uintptr_t)sites[0].path;
	attr.offsets = (uintptr_t)v;
	attr.ref_ctr_offsets = has_sem ? (uintptr_t)(v + n) : 0;
	attr.cookies = (uintptr_t)(v + 2 * n);
	attr.cnt = (uint32_t)n;
	attr.pid = pid;
	attr.multi_flags = sites[0].ret ? UPROBE_MULTI_RETURN : 0;
	fd = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		fd = -errno;
	free(v);
	return fd < 0 ? fd : keep_link(k, fd);
}

/* Attach @prog_fd to the perf event @event, whose descriptor is taken over. */
static int link_perf_event(struct kernel_place *k, int prog_fd, int event, uint32_t probe)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = probe);
	int link = bpf_link_create(prog_fd, event, BPF_PERF_EVENT, &opts), e;

	if (link < 0) {
		e = -errno;
		close(event);
		return e;
	}
	e = keep_link(k, event);
	if (e) {
		close(link);
		return e;
	}
	if (ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		e = -errno;
		close(link);
		return e;
	}
	return keep_link(k, link);
}

static int arm_perf(struct kernel_place *k, int prog_fd, const struct place_site *site, uint32_t pid)
{
	struct perf_event_attr attr;
	unsigned int type;
	char buf[32];
	int event;

	event = read_setting("/sys/bus/event_source/devices/uprobe/type", buf, sizeof(buf));
	if (event)
		return event;
	if (sscanf(buf, "%u", &type) != 1)
		return -EINVAL;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = site->sem_off << 32 | site->ret;	/* format/ref_ctr_offset: config:32-63, retprobe: config:0 */
	attr.config1 = (uintptr_t)site->path;
	attr.config2 = site->off;
	event = (int)syscall(__NR_perf_event_open, &attr, pid ? (int)pid : -1, pid ? -1 : 0, -1,
			     PERF_FLAG_FD_CLOEXEC);
	if (event < 0)
		return -errno;
	return link_perf_event(k, prog_fd, event, site->probe);
}

/* Without multi links each site takes two descriptors: allow as many as can be. */
static void allow_descriptors(struct kernel_place *k)
{
	struct rlimit lim, more = { NR_OPEN, NR_OPEN };

	k->descriptors_allowed = true;
	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur >= NR_OPEN || !setrlimit(RLIMIT_NOFILE, &more))
		return;
	more = (struct rlimit){ lim.rlim_max, lim.rlim_max };
	setrlimit(RLIMIT_NOFILE, &more);
}

static int refused_site(const struct place_site *s, int e, struct strbuf *err)
{
	strbuf_printf(err, "cannot arm %s at offset 0x%llx: ", s->path, (unsigned long long)s->off);
	switch (e) {
	case -ENOTSUP:
	case -524:	/* the kernel's own ENOTSUPP */
		strbuf_puts(err, "the kernel cannot put a breakpoint on the instruction there");
		break;
	case -EPERM:
	case -EACCES:
		strbuf_puts(err, "permission denied: CAP_PERFMON, and CAP_SYS_ADMIN for other users' files, are"
				 " needed");
		break;
	case -EMFILE:
		strbuf_puts(err, "each place takes two of the tracer's file descriptors before Linux 6.6: allow more of"
				 " them (ulimit -n), or trace fewer functions");
		break;
	case -ESRCH:
		strbuf_puts(err, "the process is gone");
		break;
	default:
		strbuf_puts(err, strerror(-e));
	}
	return e;
}

/* Is it the instruction that the kernel does not like? */
static bool is_bad_insn(int e)
{
	return e == -ENOTSUP || e == -524 || e == -EIO || e == -EINVAL;	/* 524: the kernel's own ENOTSUPP */
}

/* Has the file been removed since its sites were found? */
static bool is_gone(int e)
{
	return e == -ENOENT || e == -ESTALE;
}

/* Sites that the kernel did not take. */
struct refused {
	size_t n;
	const struct place_site *one;	/* of them, for the message */
};

/*
 * Arm the @n sites of one file and one kind.  A link is refused as a whole for one of its sites: halves of it then
 * find that one.
 */
static int arm_run(struct kernel_place *k, const struct kernel_prog *kp, const struct place_site *sites, size_t n,
		   uint32_t pid, struct refused *r)
{
	size_t before = r->n, half = n / 2;
	bool allowed = k->descriptors_allowed;
	int e, other;

	e = kp->multi ? arm_multi(k, kp->fd, sites, n, pid) : arm_perf(k, kp->fd, sites, pid);
	if (e == -EMFILE && !allowed) {
		allow_descriptors(k);
		return arm_run(k, kp, sites, n, pid, r);
	}
	if (!e)
		return 0;
	r->one = sites;
	if (n == 1)
		r->n++;
	if (n == 1 || !is_bad_insn(e))
		return e;
	e = arm_run(k, kp, sites, half, pid, r);
	if (e && !is_bad_insn(e))
		return e;
	other = arm_run(k, kp, sites + half, n - half, pid, r);
	if (other && !is_bad_insn(other))
		return other;
	return r->n - before == n ? e : 0;
}

static int arm_sites(struct place *place, int prog, const struct place_site *sites, size_t n, uint32_t pid,
		     struct strbuf *err)
{
	struct kernel_place *k = of(place);
	const struct kernel_prog kp = prog_of(k, prog);
	struct refused r = { 0 };
	int e = 0, refusal = 0;
	size_t i, end, before;

	for (i = 0; i < n && (!e || is_bad_insn(e)); i = end) {
		end = i + 1;
		while (kp.multi && end < n && !strcmp(sites[end].path, sites[i].path) &&
		       sites[end].ret == sites[i].ret)
			end++;
		before = r.n;
		e = arm_run(k, &kp, sites + i, end - i, pid, &r);
		if (!pid && is_gone(e)) {	/* nobody can run it any more */
			r.n = before;
			e = 0;
		}
		if (e)
			refusal = e;
	}
	k->skipped += r.n;
	if (e && !is_bad_insn(e))
		return refused_site(r.one, e, err);
	if (n && r.n == n)
		return refused_site(r.one, refusal, err);
	return 0;
}

static size_t skipped(const struct place *place)
{
	const struct kernel_place *k = (const struct kernel_place *)place;

	return k->skipped;
}

static int arm_profile(struct place *place, int prog, uint64_t period_ns, uint32_t probe, struct strbuf *err)
{
	struct kernel_place *k = of(place);
	struct perf_event_attr attr;
	unsigned int cpu;
	int event, e;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = period_ns;
	for (cpu = 0; cpu < k->ncpus; cpu++) {
		event = (int)syscall(__NR_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (event < 0 && errno == ENODEV)	/* a possible CPU that is not online */
			continue;
		e = event < 0 ? -errno : link_perf_event(k, prog_of(k, prog).fd, event, probe);
		if (e) {
			strbuf_printf(err, "cannot sample CPU %u: %s", cpu, strerror(-e));
			return e;
		}
	}
	return 0;
}

static int arm_tracepoint(struct place *place, int prog, const char *name, struct strbuf *err)
{
	struct kernel_place *k = of(place);
	int fd = bpf_raw_tracepoint_open(name, prog_of(k, prog).fd), e;

	e = fd < 0 ? -errno : keep_link(k, fd);
	if (e)
		strbuf_printf(err, "cannot attach to the kernel's tracepoint %s: %s", name, strerror(-e));
	k->tracepoints = true;
	return e;
}

static int set_syscall(struct place *place, uint32_t key, const struct ebpf_syscall *call)
{
	struct kernel_place *k = of(place);

	return bpf_map_update_elem(k->map_fds[EBPF_MAP_SYSCALLS], &key, call, BPF_ANY) ? -errno : 0;
}

static int run(struct place *place, int prog, uint32_t probe, const uint64_t args[10])
{
	struct kernel_place *k = of(place);
	uint64_t ctx[11];
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = sizeof(ctx));

	ctx[0] = probe;
	memcpy(ctx + 1, args, 10 * sizeof(*args));
	return bpf_prog_test_run_opts(prog_of(k, prog).fd, &opts) ? -errno : 0;
}

/* --- results ------------------------------------------------------------------------------------------ */

static int out_fd(const struct place *place)
{
	const struct kernel_place *k = (const struct kernel_place *)place;

	return k->ring ? ring_buffer__epoll_fd(k->ring) : -1;
}

static int drain(struct place *place, int (*record)(void *ctx, const void *rec, size_t size), void *ctx)
{
	struct kernel_place *k = of(place);

	if (!k->ring)
		return 0;
	k->record = record;
	k->record_ctx = ctx;
	return ring_buffer__consume(k->ring);
}

static bool is_percpu(const struct ebpf_map *m)
{
	enum bpf_map_type type = type_of(m);

	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY;
}

static int map_each(struct place *place, uint32_t map,
		    void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx)
{
	struct kernel_place *k = of(place);
	const struct ebpf_map *m = &k->unit->maps[map];
	unsigned int ncpus = is_percpu(m) ? k->ncpus : 1;
	size_t value_size = (size_t)((m->value_size + 7) & ~7u) * ncpus;
	uint32_t batch = 0, next = 0, count, want = 256, i;
	char *keys = NULL, *values = NULL, *p;
	bool first = true, last = false;
	int fd = k->map_fds[map], e = 0;

	if (fd < 0)
		return 0;
	while (!last) {
		/* A hash's bucket that holds more than fits is -ENOSPC: make more room. */
		p = realloc(keys, (size_t)want * m->key_size);
		if (p) {
			keys = p;
			p = realloc(values, want * value_size);
		}
		if (!p) {
			e = -ENOMEM;
			break;
		}
		values = p;
		count = want;
		if (bpf_map_lookup_batch(fd, first ? NULL : &batch, &next, keys, values, &count, NULL)) {
			e = -errno;
			if (e == -ENOSPC && want < 1 << 20) {
				want *= 2;
				e = 0;
				continue;
			}
			if (e != -ENOENT)	/* which says that this was the last batch */
				break;
			e = 0;
			last = true;
		}
		for (i = 0; i < count; i++)
			each(ctx, keys + (size_t)i * m->key_size, values + i * value_size, ncpus);
		batch = next;
		first = false;
	}
	free(keys);
	free(values);
	return e;
}

static void *map_memory(struct place *place, uint32_t map)
{
	struct kernel_place *k = of(place);
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (k->unit->maps[map].value_size + page - 1) & ~(page - 1);
	void *p;

	if (!k->memory) {
		p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, k->map_fds[map], 0);
		if (p == MAP_FAILED)
			return NULL;
		k->memory = p;
		k->memory_size = size;
	}
	return k->memory;
}

static int map_set(struct place *place, uint32_t map, const void *key, const void *value)
{
	return bpf_map_update_elem(of(place)->map_fds[map], key, value, BPF_ANY) ? -errno : 0;
}

static int map_delete(struct place *place, uint32_t map, const void *key)
{
	struct kernel_place *k = of(place);
	const struct ebpf_map *m = &k->unit->maps[map];
	size_t size = (size_t)((m->value_size + 7) & ~7u) * (is_percpu(m) ? k->ncpus : 1);
	void *zero;
	int e;

	if (m->type != BPF_MAP_TYPE_ARRAY && m->type != BPF_MAP_TYPE_PERCPU_ARRAY)
		return bpf_map_delete_elem(k->map_fds[map], key) ? -errno : 0;
	zero = calloc(1, size);
	if (!zero)
		return -ENOMEM;
	e = bpf_map_update_elem(k->map_fds[map], key, zero, BPF_ANY) ? -errno : 0;
	free(zero);
	return e;
}

/* --- the place ---------------------------------------------------------------------------------------- */

static const struct place_ops ops = {
	.free = free_place,
	.control = control,
	.set_probe = set_probe,
	.load = load,
	.arm_sites = arm_sites,
	.use_multi = use_multi,
	.skipped = skipped,
	.arm_profile = arm_profile,
	.arm_tracepoint = arm_tracepoint,
	.set_syscall = set_syscall,
	.disarm = disarm,
	.run = run,
	.out_fd = out_fd,
	.drain = drain,
	.map_each = map_each,
	.map_memory = map_memory,
	.map_set = map_set,
	.map_delete = map_delete,
};

int kernel_new(const struct ebpf_unit *unit, struct place **ret, struct strbuf *err)
{
	struct kernel_place *k = calloc(1, sizeof(*k));
	int ncpus, e = -ENOMEM;
	uint32_t i;

	if (!k)
		goto no_memory;
	k->place.ops = &ops;
	k->place.parallel = true;
	pthread_mutex_init(&k->lock, NULL);
	k->unit = unit;
	raise_memlock();
	find_features(&k->features);
	k->place.sleepable = k->features.sleepable;
	k->place.turns_called = unit->maps[EBPF_MAP_CALLS].type != BPF_MAP_TYPE_UNSPEC && !knows_may_goto();
	ncpus = libbpf_num_possible_cpus();
	if (ncpus < 0) {
		strbuf_puts(err, "cannot read the number of CPUs: is /sys mounted?");
		e = ncpus;
		goto fail;
	}
	k->ncpus = (unsigned int)ncpus;
	k->map_fds = malloc(unit->nmaps * sizeof(*k->map_fds));
	if (!k->map_fds)
		goto no_memory;
	for (i = 0; i < unit->nmaps; i++)
		k->map_fds[i] = -1;
	for (i = 0; i < unit->nmaps; i++) {
		e = create_map(k, i, err);
		if (e)
			goto fail;
	}
	k->control = mmap(NULL, sizeof(*k->control), PROT_READ | PROT_WRITE, MAP_SHARED,
			  k->map_fds[EBPF_MAP_CONTROL], 0);
	if (k->control == MAP_FAILED) {
		e = -errno;
		k->control = NULL;
		strbuf_printf(err, "cannot map the control block: %s", strerror(-e));
		goto fail;
	}
	if (k->map_fds[EBPF_MAP_OUT] >= 0) {
		k->ring = ring_buffer__new(k->map_fds[EBPF_MAP_OUT], ring_record, k, NULL);
		if (!k->ring) {
			e = -errno;
			strbuf_printf(err, "cannot map the output buffer: %s", strerror(-e));
			goto fail;
		}
	}
	*ret = &k->place;
	return 0;
no_memory:
	strbuf_puts(err, "out of memory");
fail:
	if (k)
		free_place(&k->place);
	return e;
}
