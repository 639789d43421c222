#include "place/execs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/strbuf.h"
#include "place/btf.h"
#include "place/kernel.h"
#include "target/target.h"

enum {
	RING_BYTES = 128 << 10,	/* room for 4,096 execs that execs_take() has not reported yet; further ones are lost */
	LOOK_MS = 250,
};

/* A process as the last search of /proc has found it. */
struct running {
	uint32_t pid;
	uint64_t dev, ino;	/* of its program */
};

/* What the program writes. */
struct report {
	uint32_t pid;
	char name[EXECS_NAME];
};

struct execs {
	struct ring_buffer *ring;	/* NULL: /proc is searched */
	int map, prog, link;
	int timer;
	struct running *known;
	size_t nknown;
	execs_fn *fn;			/* during execs_take */
	void *ctx;
};

/* --- reports of the kernel ---------------------------------------------------------------------------- */

#define INSN(CODE, DST, SRC, OFF, IMM)	\
	{ .code = (CODE), .dst_reg = (DST), .src_reg = (SRC), .off = (OFF), .imm = (int32_t)(IMM) }
#define MOV(DST, SRC)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, DST, SRC, 0, 0)
#define MOVI(DST, V)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, DST, 0, 0, V)
#define ADDI(DST, V)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, DST, 0, 0, V)
#define CALL(HELPER)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##HELPER)
#define LEAVE(OP, REG, V)	INSN(BPF_JMP | (OP) | BPF_K, REG, 0, LEAVES, V)
#define IMM64(DST, SRC, V)	INSN(BPF_LD | BPF_IMM | BPF_DW, DST, SRC, 0, V), INSN(0, 0, 0, 0, (uint64_t)(V) >> 32)

enum { INSNS = 96, LEAVES = INT16_MAX /* of a jump: to the last two instructions */ };

struct code {
	struct bpf_insn insns[INSNS];
	size_t n;
};

#define APPEND(c, v)	append(c, v, sizeof(v) / sizeof(*(v)))

static void append(struct code *c, const struct bpf_insn *insns, size_t n)
{
	memcpy(c->insns + c->n, insns, n * sizeof(*insns));
	c->n += n;
}

/* r3 = @size bytes at r3 + @off */
static void follow(struct code *c, uint32_t off, uint32_t size)
{
	const struct bpf_insn read[] = {
		ADDI(BPF_REG_3, off), MOV(BPF_REG_1, BPF_REG_10), ADDI(BPF_REG_1, -16), MOVI(BPF_REG_2, size),
		INSN(BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, -16, 0), CALL(probe_read_kernel),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_3, BPF_REG_10, -16, 0),
	};

	APPEND(c, read);
}

/*
 * The helper knows the processes of the very namespace alone.  One of a namespace within has a number in each: that of @level
 * goes to r10 - 4, if its namespace is @ino.  At an exec the current thread is the process's first one.
 */
static void append_within(struct code *c, const struct ebpf_tasks *t, uint32_t level, uint64_t ino)
{
	const uint32_t at = t->pid_numbers + level * t->number_size;
	const struct bpf_insn task[] = { CALL(get_current_task), MOV(BPF_REG_3, BPF_REG_0) }, keep[] = { MOV(BPF_REG_6, BPF_REG_3) },
	again[] = { MOV(BPF_REG_3, BPF_REG_6) }, is_deep[] = { LEAVE(BPF_JLT, BPF_REG_3, (int32_t)level), MOV(BPF_REG_3, BPF_REG_6) },
	is_same[] = { IMM64(BPF_REG_1, 0, ino), INSN(BPF_JMP | BPF_JNE | BPF_X, BPF_REG_3, BPF_REG_1, LEAVES, 0) },
	number[] = { INSN(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_3, -4, 0) };

	APPEND(c, task);
	follow(c, t->facts[ABI_TASK_TID].off[0], 8);
	APPEND(c, keep);
	follow(c, t->pid_level, 4);
	APPEND(c, is_deep);
	follow(c, at + t->number_ns, 8);
	follow(c, t->ns_inum, 4);
	APPEND(c, is_same);
	APPEND(c, again);
	follow(c, at, 4);
	APPEND(c, number);
}

/* The level of the tracer's pid namespace, below the machine's own; 0: not known. */
static uint32_t level_of(struct ebpf_tasks *ret)
{
	struct strbuf why = { 0 };
	struct btf_task task;
	bool known = !btf_task(&task, &why) && task.tasks.facts[ABI_TASK_TID].n == 1;

	strbuf_fini(&why);
	*ret = known ? task.tasks : (struct ebpf_tasks){ 0 };
	return known ? kernel_pid_level(ret) : 0;
}

/*
 * Load the program that writes the id of a process in the tracer's pid namespace, and its name, to the ring buffer.  struct
 * bpf_pidns_info is at r10 - 8: pid, then tgid; struct report at r10 - 48.  Processes that are not seen there are skipped.
 */
static int load(struct execs *e)
{
	struct target_pid_ns ns;
	struct ebpf_tasks tasks;
	struct code c = { .n = 0 };
	size_t known;
	uint32_t level;
	int err = target_pid_ns(&ns);
	const struct bpf_insn initial[] = {
		CALL(get_current_pid_tgid),
		INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_0, -8, 0),	/* tgid is the upper half */
	}, nested[] = {
		IMM64(BPF_REG_1, 0, ns.dev),
		IMM64(BPF_REG_2, 0, ns.ino),
		MOV(BPF_REG_3, BPF_REG_10),
		ADDI(BPF_REG_3, -8),
		MOVI(BPF_REG_4, 8),
		CALL(get_ns_current_pid_tgid),
	}, rest[] = {
		INSN(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_1, BPF_REG_10, -4, 0),
		INSN(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_1, -48, 0),
		MOV(BPF_REG_1, BPF_REG_10),
		ADDI(BPF_REG_1, -44),
		MOVI(BPF_REG_2, EXECS_NAME),
		CALL(get_current_comm),
		IMM64(BPF_REG_1, BPF_PSEUDO_MAP_FD, e->map),
		MOV(BPF_REG_2, BPF_REG_10),
		ADDI(BPF_REG_2, -48),
		MOVI(BPF_REG_3, sizeof(struct report)),
		MOVI(BPF_REG_4, 0),
		CALL(ringbuf_output),
		MOVI(BPF_REG_0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	if (err)
		return err;
	if (ns.is_initial) {
		APPEND(&c, initial);
	} else {
		level = level_of(&tasks);
		APPEND(&c, nested);
		known = c.n++;
		c.insns[known] = (struct bpf_insn)LEAVE(BPF_JNE, BPF_REG_0, 0);
		if (level) {
			append_within(&c, &tasks, level, ns.ino);
			c.insns[known] = (struct bpf_insn)INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, (int16_t)(c.n - known - 1), 0);
		}
	}
	APPEND(&c, rest);
	for (size_t i = 0; i < c.n; i++)
		if (BPF_CLASS(c.insns[i].code) == BPF_JMP && c.insns[i].off == LEAVES)
			c.insns[i].off = (int16_t)(c.n - 2 - i - 1);
	e->prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "dtap_execs", "Dual MIT/GPL", c.insns, c.n, NULL);
	return e->prog < 0 ? -errno : 0;
}

static int taken(void *ctx, void *data, size_t size)
{
	const struct execs *e = ctx;
	struct report r;

	if (size == sizeof(r)) {
		memcpy(&r, data, sizeof(r));
		r.name[EXECS_NAME - 1] = 0;
		e->fn(e->ctx, r.pid, r.name);
	}
	return 0;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void stop_asking(struct execs *e)
{
	close_one(&e->link);
	close_one(&e->prog);
	ring_buffer__free(e->ring);
	e->ring = NULL;
	close_one(&e->map);
}

static int ask_kernel(struct execs *e)
{
	int err = 0;

	e->map = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "dtap_execs", 0, 0, RING_BYTES, NULL);
	if (e->map < 0)
		return -errno;
	e->ring = ring_buffer__new(e->map, taken, e, NULL);
	if (!e->ring)
		err = -errno;
	if (!err)
		err = load(e);
	if (!err) {
		e->link = bpf_raw_tracepoint_open("sched_process_exec", e->prog);
		err = e->link < 0 ? -errno : 0;
	}
	if (err)
		stop_asking(e);
	return err;
}

/* --- searching /proc ---------------------------------------------------------------------------------- */

static bool is_same(const struct running *a, const struct running *b)
{
	return a->pid == b->pid && a->dev == b->dev && a->ino == b->ino;
}

/* List all processes, in order of their ids, and call @fn (or NULL) for each that is new or runs another program. */
static void look(struct execs *e, execs_fn *fn, void *ctx)
{
	struct running *now = NULL, *p;
	size_t n = 0, cap = 0, old = 0;
	DIR *d = opendir("/proc");
	struct dirent *entry;
	struct stat st;
	char path[32];

	while (d && (entry = readdir(d))) {	/* procfs lists processes in the order of their numbers */
		struct running r = { .pid = (uint32_t)strtoul(entry->d_name, NULL, 10) };

		if (!r.pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%u/exe", r.pid);
		if (stat(path, &st))
			continue;
		r.dev = st.st_dev;
		r.ino = st.st_ino;
		if (n == cap) {
			cap = cap ? 2 * cap : 256;
			p = realloc(now, cap * sizeof(*now));
			if (!p)
				break;
			now = p;
		}
		now[n++] = r;
		while (old < e->nknown && e->known[old].pid < r.pid)
			old++;
		if (fn && !(old < e->nknown && is_same(&e->known[old], &r)))
			fn(ctx, r.pid, "");
	}
	if (d)
		closedir(d);
	free(e->known);
	e->known = now;
	e->nknown = n;
}

static int ask_proc(struct execs *e)
{
	const struct itimerspec every = { { 0, LOOK_MS * 1000000L }, { 0, LOOK_MS * 1000000L } };

	e->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (e->timer < 0 || timerfd_settime(e->timer, 0, &every, NULL))
		return -errno;
	look(e, NULL, NULL);
	return 0;
}

/* ------------------------------------------------------------------------------------------------------ */

int execs_open(struct execs **ret)
{
	struct execs *e = calloc(1, sizeof(*e));
	int err = 0;

	if (!e)
		return -ENOMEM;
	e->map = e->prog = e->link = e->timer = -1;
	if (ask_kernel(e))
		err = ask_proc(e);
	if (err) {
		execs_close(e);
		return err;
	}
	*ret = e;
	return 0;
}

void execs_close(struct execs *e)
{
	if (!e)
		return;
	stop_asking(e);
	close_one(&e->timer);
	free(e->known);
	free(e);
}

int execs_fd(const struct execs *e)
{
	return e->ring ? ring_buffer__epoll_fd(e->ring) : e->timer;
}

void execs_take(struct execs *e, execs_fn *fn, void *ctx)
{
	uint64_t ticks;

	e->fn = fn;
	e->ctx = ctx;
	if (e->ring)
		ring_buffer__consume(e->ring);
	else if (read(e->timer, &ticks, sizeof(ticks)) == sizeof(ticks))
		look(e, fn, ctx);
}
