/*
 * Loading programs into the kernel.  If the verifier rejects a program, its message is reported with the position in
 * the script.
 */
#include "place/kernel_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/grow.h"
#include "base/strbuf.h"
#include "place/func_info.h"

/* The last instruction that the verifier checked: the log ends with "12: (85) call ..." and an error message. */
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

/* The verifier's error message: the last line before the statistics. */
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
	int fd = bpf_prog_load(kp->prog->type, "dtap", KERNEL_LICENSE, insns, kp->prog->ninsns, &opts);

	return fd < 0 ? -errno : fd;
}

/* Atomic operations with a result are 5.12's, bpf_loop is 5.17's: what the verifier says of their like helps nobody. */
static bool is_too_old(struct utsname *uts)
{
	unsigned int major, minor;

	return !uname(uts) && sscanf(uts->release, "%u.%u", &major, &minor) == 2 && (major < 5 || (major == 5 && minor < 17));
}

/* The kernel has rejected the program: load it again to get the log, and word the reason with the script's position. */
static void explain_refusal(const struct kernel_prog *kp, const struct bpf_insn *insns,
			    const struct func_info *funcs, int refusal, struct strbuf *err, struct strbuf *log)
{
	const size_t size = 16 << 20;
	const struct ebpf_line *line;
	struct utsname uts;
	char *buf;

	strbuf_puts(err, "the kernel refused the program");
	if (is_too_old(&uts)) {
		strbuf_printf(err, ": programs in the kernel need Linux 5.17 or later, this is %s; Python's function, line, gc, "
				   "import and audit markers are there all the same with -x place=target (--place=target)",
			      uts.release);
		return;
	}
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

/* Load @kp with global functions, or with static ones only. */
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

/* Take over the descriptor of a loaded program; it is closed on failure.  Returns its handle. */
static int keep_prog(struct kernel_place *k, const struct kernel_prog *kp)
{
	int handle = -ENOMEM;

	pthread_mutex_lock(&k->lock);
	if (grow_array(&k->progs, &k->progs_cap, k->nprogs, sizeof(*k->progs))) {
		handle = (int)k->nprogs++;
		k->progs[handle] = *kp;
	}
	pthread_mutex_unlock(&k->lock);
	if (handle < 0)
		close(kp->fd);
	return handle;
}

struct kernel_prog kernel_prog_of(struct kernel_place *k, int handle)
{
	struct kernel_prog kp;

	pthread_mutex_lock(&k->lock);
	kp = k->progs[handle];
	pthread_mutex_unlock(&k->lock);
	return kp;
}

int kernel_load(struct place *place, const struct ebpf_prog *prog, bool multi, struct strbuf *err, struct strbuf *log)
{
	struct kernel_place *k = kernel_of(place);
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
		fd = load_as(&kp, insns, false, err, err, log);
		/* An older kernel, which would reject global functions each time: do not try them again. */
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
	if (err)
		strbuf_puts(err, "out of memory");
	return -ENOMEM;
}
