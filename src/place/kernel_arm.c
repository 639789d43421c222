/*
 * What fires programs in the kernel: uprobes, with one link for all sites of a file or one perf event for each; the
 * clock of each CPU; raw tracepoints.  A link or an event is a descriptor; closing it disarms the site.
 */
#include "place/kernel_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/membarrier.h>
#include <linux/perf_event.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/parallel.h"
#include "base/strbuf.h"

enum { UPROBE_MULTI_RETURN = 1 };	/* BPF_F_UPROBE_MULTI_RETURN */

/* Take over the descriptor of a link.  On failure it is closed. */
static int keep_link(struct kernel_place *k, int fd)
{
	int e = -ENOMEM;

	pthread_mutex_lock(&k->lock);
	if (grow_array(&k->links, &k->links_cap, k->nlinks, sizeof(*k->links))) {
		k->links[k->nlinks++] = fd;
		e = 0;
	}
	pthread_mutex_unlock(&k->lock);
	if (e)
		close(fd);
	return e;
}

bool kernel_use_multi(const struct place *place, uint32_t pid)
{
	const struct kernel_place *k = (const struct kernel_place *)place;

	return pid ? k->features.multi_pid : k->features.uprobe_multi;
}

/* Arm the @n sites, all of one file and of one kind, with one link. */
static int arm_multi(struct kernel_place *k, int prog_fd, const struct place_site *sites, size_t n, uint32_t pid)
{
	uint64_t *v = malloc(3 * n * sizeof(*v));
	struct uprobe_multi_attr attr;
	char link[FILE_LINK_MAX];
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
	attr.path = (uintptr_t)file_link(sites[0].file, link);
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

/* Attach @prog_fd to the perf event @event; takes over that descriptor. */
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

int kernel_open_site(const struct file *f, uint64_t off, uint64_t sem_off, bool ret, uint32_t tid)
{
	struct perf_event_attr attr;
	char buf[32], link[FILE_LINK_MAX];
	unsigned int type;
	int event;

	event = kernel_setting("/sys/bus/event_source/devices/uprobe/type", buf, sizeof(buf));
	if (event)
		return event;
	if (sscanf(buf, "%u", &type) != 1)
		return -EINVAL;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = type;
	attr.config = sem_off << 32 | ret;	/* format/ref_ctr_offset: config:32-63, retprobe: config:0 */
	attr.config1 = (uintptr_t)file_link(f, link);
	attr.config2 = off;
	event = (int)syscall(__NR_perf_event_open, &attr, tid ? (int)tid : -1, tid ? -1 : 0, -1, PERF_FLAG_FD_CLOEXEC);
	return event < 0 ? -errno : event;
}

static int arm_perf(struct kernel_place *k, int prog_fd, const struct place_site *site, uint32_t pid)
{
	int event = kernel_open_site(site->file, site->off, site->sem_off, site->ret, pid);

	return event < 0 ? event : link_perf_event(k, prog_fd, event, site->probe);
}

static int refused_site(const struct place_site *s, int e, struct strbuf *err)
{
	strbuf_printf(err, "cannot arm %s at offset 0x%llx: ", s->file->path, (unsigned long long)s->off);
	switch (e) {
	case -ESTALE:
		strbuf_puts(err, "the file was rewritten after it had been read; start again when whoever writes it is done");
		break;
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

/* Does the kernel reject the instruction at the site? */
static bool is_bad_insn(int e)
{
	return e == -ENOTSUP || e == -524 || e == -EIO || e == -EINVAL;	/* 524: the kernel's own ENOTSUPP */
}

/* Sites that the kernel has rejected. */
struct refused {
	size_t n;
	const struct place_site *one;	/* one of them, for the message */
};

/*
 * Arm the @n sites of one file and one kind.  The kernel rejects a link as a whole for one bad site, which is then
 * found by bisection.
 */
static int arm_run(struct kernel_place *k, const struct kernel_prog *kp, const struct place_site *sites, size_t n,
		   uint32_t pid, struct refused *r)
{
	size_t before = r->n, half = n / 2;
	int e, other;

	e = kp->multi ? arm_multi(k, kp->fd, sites, n, pid) : arm_perf(k, kp->fd, sites, pid);
	if (e == -EMFILE && file_descriptors_more())	/* without multi links each site takes two descriptors */
		return arm_run(k, kp, sites, n, pid, r);
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

static int arm_sites(struct kernel_place *k, int prog, const struct place_site *sites, size_t n, uint32_t pid, struct strbuf *err)
{
	const struct kernel_prog kp = kernel_prog_of(k, prog);
	struct refused r = { 0 };
	int e = 0, refusal = 0;
	size_t i, end, changed = 0;

	for (i = 0; i < n && (!e || is_bad_insn(e)); i = end) {
		end = i + 1;
		while (kp.multi && end < n && sites[end].file == sites[i].file && sites[end].ret == sites[i].ret)
			end++;
		if (file_check(sites[i].file)) {
			changed += end - i;
			r.one = &sites[i];
			refusal = -ESTALE;
			continue;
		}
		e = arm_run(k, &kp, sites + i, end - i, pid, &r);
		if (!e && file_check(sites[i].file))	/* rewritten meanwhile; freeing the place disarms the sites */
			return refused_site(&sites[i], -ESTALE, err);
		if (e)
			refusal = e;
	}
	k->skipped += r.n;
	k->changed += changed;
	if (e && !is_bad_insn(e))
		return refused_site(r.one, e, err);
	if (n && r.n + changed == n)
		return refused_site(r.one, refusal, err);
	return 0;
}

size_t kernel_skipped(const struct place *place, size_t *changed)
{
	const struct kernel_place *k = (const struct kernel_place *)place;

	*changed = k->changed;
	return k->skipped;
}

static int refused_event(const struct ebpf_event *event, unsigned int cpu, int e, struct strbuf *err)
{
	if (event->type == PERF_TYPE_BREAKPOINT)
		strbuf_printf(err, "cannot watch %u byte%s of memory at 0x%llx on CPU %u: ", event->len,
			      event->len == 1 ? "" : "s", (unsigned long long)event->addr, cpu);
	else if (event->type == PERF_TYPE_SOFTWARE && event->config == PERF_COUNT_SW_CPU_CLOCK)
		strbuf_printf(err, "cannot sample CPU %u: ", cpu);
	else
		strbuf_printf(err, "cannot count perf events of type %u, config %llu, on CPU %u: ", event->type,
			      (unsigned long long)event->config, cpu);
	if (e == -ENOENT || e == -EOPNOTSUPP || e == -ENODEV)
		strbuf_puts(err, "this machine has no such counter; a virtual one often has no counters of the processor");
	else if (e == -ENOSPC)
		strbuf_puts(err, "all of the processor's debug registers are in use");
	else
		strbuf_puts(err, strerror(-e));
	return e;
}

static int arm_event(struct kernel_place *k, int prog, const struct ebpf_event *event, uint32_t probe, struct strbuf *err)
{
	struct perf_event_attr attr;
	unsigned int cpu;
	int fd, e;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = event->type;
	attr.config = event->config;
	attr.sample_period = event->period;	/* in a union with sample_freq */
	attr.freq = event->is_freq;
	attr.disabled = 1;			/* until the program is attached */
	if (event->type == PERF_TYPE_BREAKPOINT) {
		attr.bp_type = event->access;
		attr.bp_addr = event->addr;
		attr.bp_len = event->len;
	}
	for (cpu = event->one_cpu ? event->cpu : 0; cpu < k->ncpus; cpu++) {
		fd = (int)syscall(__NR_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 && errno == ENODEV)	/* a possible CPU that is not online */
			continue;
		e = fd < 0 ? -errno : link_perf_event(k, kernel_prog_of(k, prog).fd, fd, probe);
		if (e)
			return refused_event(event, cpu, e, err);
		if (event->one_cpu)
			break;
	}
	return 0;
}

static int arm_tracepoint(struct kernel_place *k, int prog, const char *name, struct strbuf *err)
{
	int fd = bpf_raw_tracepoint_open(name, kernel_prog_of(k, prog).fd), e;

	e = fd < 0 ? -errno : keep_link(k, fd);
	if (e)
		strbuf_printf(err, "cannot attach to the kernel's tracepoint %s: %s", name, strerror(-e));
	k->tracepoints = true;
	return e;
}

/* --- what was armed ------------------------------------------------------------------------------------- */

static void fini_armed(struct kernel_armed *a)
{
	for (size_t i = 0; i < a->n; i++)
		file_close((struct file *)a->sites[i].file);
	free(a->sites);
	free(a->name);
}

void kernel_forget_armed(struct kernel_place *k)
{
	for (size_t i = 0; i < k->narmed; i++)
		fini_armed(&k->armed[i]);
	free(k->armed);
	k->armed = NULL;
	k->narmed = k->armed_cap = 0;
}

static int arm(struct kernel_place *k, const struct kernel_armed *a, struct strbuf *err)
{
	switch (a->as) {
	case KERNEL_SITES:
		return arm_sites(k, a->prog, a->sites, a->n, a->pid, err);
	case KERNEL_EVENT:
		return arm_event(k, a->prog, &a->event, a->probe, err);
	case KERNEL_TRACEPOINT:
		return arm_tracepoint(k, a->prog, a->name, err);
	}
	return -EINVAL;
}

/* Arm @a, or while the place rests only remember it.  Takes over what @a points to. */
static int arm_and_keep(struct kernel_place *k, struct kernel_armed *a, struct strbuf *err)
{
	int e = k->rests ? 0 : arm(k, a, err);
	bool kept = false;

	/* A place that never rests need not know. */
	if (!e && k->unit->maps[EBPF_MAP_COSTS].type != BPF_MAP_TYPE_UNSPEC) {
		pthread_mutex_lock(&k->lock);
		kept = grow_array(&k->armed, &k->armed_cap, k->narmed, sizeof(*k->armed));
		if (kept)
			k->armed[k->narmed++] = *a;
		pthread_mutex_unlock(&k->lock);
		e = kept ? 0 : -ENOMEM;
	}
	if (!kept)
		fini_armed(a);
	return e;
}

int kernel_arm_sites(struct place *place, int prog, const struct place_site *sites, size_t n, uint32_t pid,
		     struct strbuf *err)
{
	struct kernel_armed a = { .prog = prog, .as = KERNEL_SITES, .sites = malloc(n * sizeof(*sites)), .n = n, .pid = pid };

	if (n && !a.sites)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		a.sites[i] = sites[i];
		file_use((struct file *)sites[i].file);	/* until it is armed again, others may have forgotten it */
	}
	return arm_and_keep(kernel_of(place), &a, err);
}

int kernel_arm_event(struct place *place, int prog, const struct ebpf_event *event, uint32_t probe, struct strbuf *err)
{
	struct kernel_armed a = { .prog = prog, .as = KERNEL_EVENT, .event = *event, .probe = probe };

	return arm_and_keep(kernel_of(place), &a, err);
}

int kernel_arm_tracepoint(struct place *place, int prog, const char *name, struct strbuf *err)
{
	struct kernel_armed a = { .prog = prog, .as = KERNEL_TRACEPOINT, .name = strdup(name) };

	return a.name ? arm_and_keep(kernel_of(place), &a, err) : -ENOMEM;
}

struct rearming {
	struct kernel_place *k;
	pthread_mutex_t lock;
	struct strbuf err;
	int e;
};

static void arm_again(void *ctx, size_t i)
{
	struct rearming *r = ctx;
	struct strbuf err = { 0 };
	int e = arm(r->k, &r->k->armed[i], &err);

	pthread_mutex_lock(&r->lock);
	if (e && e != -ESRCH && !r->e) {
		r->e = e;
		strbuf_puts(&r->err, strbuf_str(&err));
	}
	pthread_mutex_unlock(&r->lock);
	strbuf_fini(&err);
}

int kernel_rest(struct place *place, bool rest, struct strbuf *err)
{
	struct kernel_place *k = kernel_of(place);
	struct rearming r = { .k = k, .lock = PTHREAD_MUTEX_INITIALIZER };

	k->rests = rest;
	if (rest) {
		kernel_disarm(place);
		return 0;
	}
	/* What is skipped now was told the first time. */
	const size_t skipped = k->skipped, changed = k->changed;

	kernel_forget_threads(k);
	parallel_each(k->narmed, arm_again, &r);
	k->skipped = skipped;
	k->changed = changed;
	strbuf_puts(err, strbuf_str(&r.err));
	strbuf_fini(&r.err);
	return r.e;
}

static void close_link(void *place, size_t i)
{
	close(kernel_of(place)->links[i]);
}

void kernel_disarm(struct place *place)
{
	struct kernel_place *k = kernel_of(place);

	/* The last close of a link detaches and waits for running programs, some 50 ms: close them in parallel. */
	parallel_each(k->nlinks, close_link, place);
	k->nlinks = 0;
	/* Closing a tracepoint does not wait.  This waits until every CPU has left the programs that it was running. */
	if (k->tracepoints)
		syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	k->tracepoints = false;
}
