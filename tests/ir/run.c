/*
 * run [-v] [-1] [-w WAY]... FILE.ir...: run IR programs and check what they leave behind.
 *
 * The ways: in the kernel (kernel; turns: with a call for each turn of a loop), and in this process as in a traced one, by
 * the interpreter (interpreted) and compiled (compiled).  Without -w it is all of them.
 *
 * All clauses of a file make one program, but those for a probe named ERROR, which run for its faults.  Lines that
 * begin with "#:" say what happens; they are carried out in order:
 *
 *	#: run [ARG...]			run it; an argument is a number, or a string (its address is passed)
 *	#: parallel N TIMES [ARG...]	run it so often in each of N threads
 *	#: record N VALUE... [= WORD...]	the next record is of layout N with these fields, and the statistic's
 *					words
 *	#: error FAULT [VALUE]		the next record is of a fault
 *	#: map N KEY... = VALUE|none	the array N has, or has not, the element
 *	#: agg N KEY... = WORD...	the aggregation has these words, summed over the CPUs ("I:WORD": word I only,
 *					and all words not mentioned are 0)
 *	#: global N = VALUE		the global variable N has this value
 *	#: drops N = COUNT		enum abi_drop
 *	#: entries MAP = COUNT		the eBPF map of that number (struct ebpf_unit) has so many elements
 *	#: refused TEXT			it is no program for the kernel, and the message has TEXT in it
 *	#: only WAY... [because ...]	it can run in these ways only
 *	#: page ADDRESS none|r|rw "HEX"	there is a page of memory, with these bytes again and again
 *	#: bytes ADDRESS "HEX"		these bytes are there now
 *
 * Behind the last line no record may be left.  In the kernel every program is also loaded as one for uprobes, sleepable
 * and not, and for perf events, and with functions that the kernel looks at with each call, and by themselves; -1: it is
 * loaded once.  That needs CAP_BPF and CAP_PERFMON: exits with 77 without, when all that can be run has been.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "abi/record.h"
#include "abi/stat.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "bpf/ebpf.h"
#include "inside.h"
#include "ir/layout.h"
#include "place/func_info.h"
#include "target/target.h"
#include "vm/record.h"

enum { MAX_MAPS = 512, MAX_ARGS = 10, MAX_VALUES = 160 };

enum way { KERNEL, TURNS, INTERPRETED, COMPILED, WAYS };

static const char *const way_names[WAYS] = { "kernel", "turns", "interpreted", "compiled" };

struct value {
	bool is_str, is_none, indexed;
	uint32_t index;
	int64_t i;
	char *s;
};

struct run {
	const char *path;
	unsigned int line;
	struct arena *arena;
	struct ir_prog *prog;
	struct ebpf_unit *unit;
	struct ir_clause **clauses, **errors;
	unsigned int nclauses, nerrors;
	enum way way;
	bool once;
	int fds[MAX_MAPS], prog_fd;	/* in the kernel */
	struct abi_control *control;
	struct ring_buffer *ring;
	struct inside *in;		/* in this process */
	char **records;
	size_t *record_sizes;
	size_t nrecords, nread, records_cap, sizes_cap;
	unsigned int failures;
	bool verbose;
};

static void complain(struct run *r, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%u: %s: ", r->path, r->line, way_names[r->way]);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	r->failures++;
}

/* --- the kernel -------------------------------------------------------------------------------------- */

static int keep_record(void *ctx, void *data, size_t size)
{
	struct run *r = ctx;

	r->records = arena_grow(r->arena, r->records, &r->records_cap, r->nrecords, sizeof(*r->records));
	r->record_sizes = arena_grow(r->arena, r->record_sizes, &r->sizes_cap, r->nrecords, sizeof(size_t));
	r->records[r->nrecords] = arena_alloc(r->arena, size);
	memcpy(r->records[r->nrecords], data, size);
	r->record_sizes[r->nrecords++] = size;
	return 0;
}

/* Is there eBPF in the kernel for this process? */
static bool has_kernel(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "ir", 4, 4, 1, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != EPERM;
}

static bool create_maps(struct run *r)
{
	uint32_t zero = 0;

	for (uint32_t k = 0; k < r->unit->nmaps; k++) {
		const struct ebpf_map *m = &r->unit->maps[k];
		LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = m->map_flags);

		if (m->type == BPF_MAP_TYPE_UNSPEC)
			continue;
		r->fds[k] = bpf_map_create(m->type, m->name, m->key_size, m->value_size, m->max_entries, &opts);
		if (r->fds[k] < 0) {
			complain(r, "cannot create the map %s: %s", m->name, strerror(errno));
			return false;
		}
		if (m->init && (bpf_map_update_elem(r->fds[k], &zero, m->init, 0) || bpf_map_freeze(r->fds[k]))) {
			complain(r, "cannot fill the map %s: %s", m->name, strerror(errno));
			return false;
		}
	}
	return true;
}

static const struct abi_probe probes[] = {
	{ .id = 7, .epid = 10, .flags = ABI_PROBE_PID_SUFFIX, .prov = "python", .mod = "libpython.so", .func = "eval",
	  .name = "function-entry" },
	{ .id = 3, .epid = 20, .prov = "dtrace", .name = "ERROR" },
};

static bool open_maps(struct run *r)
{
	uint32_t zero = 0, one = 1;

	if (!create_maps(r))
		return false;
	bpf_map_update_elem(r->fds[EBPF_MAP_PROBES], &zero, &probes[0], 0);
	bpf_map_update_elem(r->fds[EBPF_MAP_PROBES], &one, &probes[1], 0);
	r->control = mmap(NULL, sizeof(*r->control), PROT_READ | PROT_WRITE, MAP_SHARED, r->fds[EBPF_MAP_CONTROL], 0);
	if (r->control == MAP_FAILED) {
		complain(r, "cannot map the control block: %s", strerror(errno));
		r->control = NULL;
		return false;
	}
	r->control->state = ABI_STATE_ACTIVE;
	r->ring = ring_buffer__new(r->fds[EBPF_MAP_OUT], keep_record, r, NULL);
	if (!r->ring) {
		complain(r, "cannot open the ring buffer: %s", strerror(errno));
		return false;
	}
	return true;
}

static bool is_linux(unsigned int major, unsigned int minor)
{
	unsigned int have = 0, then = 0;
	struct utsname uts;

	return !uname(&uts) && sscanf(uts.release, "%u.%u", &have, &then) == 2 &&
	       (have > major || (have == major && then >= minor));
}

/* Functions that are looked at by themselves. */
static bool has_globals(void)
{
	return is_linux(6, 17);
}

static bool has_may_goto(void)
{
	return is_linux(6, 9);
}

/* Load @p with these instructions, its functions global or static: a descriptor, or -1 and a complaint. */
static int load_as(struct run *r, const struct ebpf_prog *p, const struct bpf_insn *insns, bool globals,
		   const char *what)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = p->sleepable ? BPF_F_SLEEPABLE : 0);
	static char log[4 << 20];
	struct func_info funcs;
	int fd;

	if (func_info_make(insns, p->ninsns, p->funcs, globals ? p->nfuncs : 0, &funcs)) {
		complain(r, "%s: no type information", what);
		return -1;
	}
	opts.prog_btf_fd = funcs.btf_fd >= 0 ? (__u32)funcs.btf_fd : 0;
	opts.func_info = funcs.v;
	opts.func_info_cnt = funcs.n;
	opts.func_info_rec_size = sizeof(*funcs.v);
	fd = bpf_prog_load(p->type, "ir", "Dual MIT/GPL", insns, p->ninsns, &opts);
	if (fd < 0) {
		struct strbuf text = { 0 };

		opts.log_buf = log;
		opts.log_size = sizeof(log);
		opts.log_level = 2;
		log[0] = '\0';
		bpf_prog_load(p->type, "ir", "Dual MIT/GPL", insns, p->ninsns, &opts);
		complain(r, "%s, %s functions: the kernel refuses the program: %s", what, globals ? "global" : "static",
			 strerror(-fd));
		ebpf_disasm(p, &text);
		fprintf(stderr, "%s\n", r->verbose ? strbuf_str(&text) : "");
		fprintf(stderr, "%s\n", strlen(log) > 4000 && !r->verbose ? log + strlen(log) - 4000 : log);
		strbuf_fini(&text);
	} else if (r->verbose) {
		printf("%s: %s, %s functions: %u instructions\n", r->path, what, globals ? "global" : "static",
		       p->ninsns);
		opts.log_buf = log;
		opts.log_size = sizeof(log);
		opts.log_level = 4;
		close(bpf_prog_load(p->type, "ir", "Dual MIT/GPL", insns, p->ninsns, &opts));
		printf("%s", strstr(log, "processed") ? strstr(log, "processed") : log);
	}
	func_info_fini(&funcs);
	return fd;
}

static int load(struct run *r, const struct ebpf_env *env, const char *what)
{
	const char *err;
	struct ebpf_prog *p;
	struct bpf_insn *insns;
	int fd, calls = -1;

	p = ebpf_compile(r->unit, env, r->clauses, r->nclauses, r->errors, r->nerrors, &err);
	if (!p) {
		complain(r, "%s: %s", what, err);
		return -1;
	}
	insns = arena_alloc(r->arena, p->ninsns * sizeof(*insns));
	memcpy(insns, p->insns, p->ninsns * sizeof(*insns));
	for (uint32_t k = 0; k < p->nrelocs; k++) {
		fd = r->fds[p->relocs[k].map];
		if (p->relocs[k].map == EBPF_MAP_CALLS)
			fd = calls = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "calls", 4, 4, 1, NULL);
		insns[p->relocs[k].insn].imm = fd;
	}
	fd = load_as(r, p, insns, false, what);
	if (fd >= 0 && p->nfuncs && has_globals() && !r->once) {
		close(fd);
		fd = load_as(r, p, insns, true, what);
	}
	if (calls >= 0)
		close(calls);
	return fd;
}

static void load_all(struct run *r)
{
	struct ebpf_env env = { .ctx = EBPF_CTX_RUN, .error_probe = 1, .task_parent = 8, .task_tgid = 16,
				.task_runtime = 24, .task_exec_start = 32 };
	struct target_pid_ns ns;
	int fd;

	env.turns_called = r->way == TURNS;
	if (!target_pid_ns(&ns) && !ns.is_initial) {
		env.pid_ns = true;
		env.ns_dev = ns.dev;
		env.ns_ino = ns.ino;
	}
	r->prog_fd = load(r, &env, "run");
	if (r->once)
		return;
	env.ctx = EBPF_CTX_PERF;
	fd = load(r, &env, "perf");
	close(fd);
	env.ctx = EBPF_CTX_UPROBE;
	env.nargs = 4;
	env.only_pid = 1;
	env.args[0] = (struct ebpf_operand){ .loc = EBPF_LOC_REG, .width = 8, .reg_off = 112 };
	env.args[1] = (struct ebpf_operand){ .loc = EBPF_LOC_MEM, .width = 8, .has_base = true, .reg_off = 104,
					     .value = 16 };
	env.args[2] = (struct ebpf_operand){ .loc = EBPF_LOC_REG, .width = 4, .sign = true, .reg_off = 96 };
	env.args[3] = (struct ebpf_operand){ .loc = EBPF_LOC_CONST, .value = -1, .width = 4, .sign = true };
	fd = load(r, &env, "uprobe");
	close(fd);
	env.sleepable = true;
	env.pid_ns = true;
	env.ns_dev = 4;
	env.ns_ino = 4026531836;
	fd = load(r, &env, "sleepable uprobe");
	close(fd);
}

/* --- in either place ----------------------------------------------------------------------------------- */

static bool run_once(struct run *r, const uint64_t ctx[1 + MAX_ARGS])
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = (1 + MAX_ARGS) * sizeof(*ctx));

	return r->in ? inside_run(r->in, ctx) : !bpf_prog_test_run_opts(r->prog_fd, &opts);
}

static int keep_copy(void *r, const struct record *rec)
{
	char *copy = arena_alloc(((struct run *)r)->arena, rec->size);

	memcpy(copy, rec->hdr, rec->size);
	return keep_record(r, copy, rec->size);
}

static void take_records(struct run *r)
{
	if (!r->in)
		ring_buffer__consume(r->ring);
	else if (inside_place(r->in)->ops->drain(inside_place(r->in), keep_copy, r) < 0)
		complain(r, "cannot read the records");
}

/* All elements of map number @map; values of several CPUs are one after the other. */
static void each_element(struct run *r, uint32_t map,
			 void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx)
{
	static char key[1 << 20], value[1 << 20];
	const struct ebpf_map *m = &r->unit->maps[map];
	bool first = true, per_cpu = m->type == BPF_MAP_TYPE_PERCPU_HASH || m->type == BPF_MAP_TYPE_PERCPU_ARRAY;

	if (r->in) {
		inside_place(r->in)->ops->map_each(inside_place(r->in), map, each, ctx);
		return;
	}
	while (!bpf_map_get_next_key(r->fds[map], first ? NULL : key, key)) {
		first = false;
		if (!bpf_map_lookup_elem(r->fds[map], key, value))
			each(ctx, key, value, per_cpu ? (unsigned int)libbpf_num_possible_cpus() : 1);
	}
}

static uint64_t drops(struct run *r, enum abi_drop kind)
{
	struct place_told told;

	if (!r->in)
		return r->control->drops[kind];
	inside_place(r->in)->ops->told(inside_place(r->in), &told);
	return told.drops[kind];
}

/* --- values ------------------------------------------------------------------------------------------ */

/* The next word of *p as a value; false at the end of the line. */
static bool next_value(struct run *r, const char **p, struct value *v)
{
	char *end;

	memset(v, 0, sizeof(*v));
	while (isblank((unsigned char)**p))
		(*p)++;
	if (!**p || **p == '\n')
		return false;
	if (**p == '"') {
		size_t n = 0;

		v->is_str = true;
		/* A page of its own behind it, so that reading on by some bytes is harmless. */
		v->s = arena_alloc(r->arena, strcspn(*p, "\n") + 4096);
		for ((*p)++; **p && **p != '"' && **p != '\n'; (*p)++) {
			if (**p == '\\' && (*p)[1] == 'n') {
				v->s[n++] = '\n';
				(*p)++;
			} else if (**p == '\\' && (*p)[1] == 'x') {
				char hex[3] = { (*p)[2], (*p)[3], '\0' };

				v->s[n++] = (char)strtol(hex, NULL, 16);
				*p += 3;
			} else if (**p == '\\' && ((*p)[1] == '"' || (*p)[1] == '\\')) {
				v->s[n++] = *++*p;
			} else if (**p == '*' && isdigit((unsigned char)(*p)[1]) && n) {
				/* "a*40": the byte before it, 40 times */
				long times = strtol(*p + 1, &end, 10);
				char c = v->s[n - 1];
				char *more = arena_alloc(r->arena, n + (size_t)times + strcspn(*p, "\n") + 4096);

				memcpy(more, v->s, n);
				memset(more + n, c, (size_t)times - 1);
				n += (size_t)times - 1;
				v->s = more;
				*p = end - 1;
			} else {
				v->s[n++] = **p;
			}
		}
		if (**p == '"')
			(*p)++;
		return true;
	}
	if (!strncmp(*p, "none", 4)) {
		v->is_none = true;
		*p += 4;
		return true;
	}
	if (**p == '=') {
		(*p)++;
		v->is_none = true;
		v->index = 1;
		return true;
	}
	errno = 0;
	v->i = strtoll(*p, &end, 0);
	if (errno)
		v->i = (int64_t)strtoull(*p, &end, 0);
	if (end == *p) {
		complain(r, "what is %.*s?", (int)strcspn(*p, " \n"), *p);
		*p += strcspn(*p, "\n");
		return false;
	}
	*p = end;
	if (*end == ':') {
		v->indexed = true;
		v->index = (uint32_t)v->i;
		v->i = strtoll(end + 1, &end, 0);
		*p = end;
	}
	return true;
}

static unsigned int values(struct run *r, const char *p, struct value *v)
{
	unsigned int n = 0;

	while (n < MAX_VALUES && next_value(r, &p, &v[n]))
		n++;
	return n;
}

static bool is_equals(const struct value *v)
{
	return v->is_none && v->index == 1;
}

static bool same(const struct value *want, const struct ir_value *got)
{
	if (want->is_str)
		return got->type == IR_STR && !strcmp(want->s, got->s);
	return got->type == IR_INT && want->i == got->i;
}

/* An integer in memory takes 8 bytes, of which its low ones count. */
static int64_t extended(const struct ir_slot *s, int64_t v)
{
	unsigned int shift = 64 - 8 * (s->width && s->width < 8 ? s->width : 8);

	return s->sign ? (int64_t)((uint64_t)v << shift) >> shift : (int64_t)((uint64_t)v << shift >> shift);
}

static void show(struct strbuf *b, const struct ir_value *v)
{
	if (v->type == IR_STR)
		strbuf_printf(b, " \"%s\"", v->s);
	else
		strbuf_printf(b, " %" PRId64, v->i);
}

/* --- what the lines say ------------------------------------------------------------------------------- */

/* The probe's number and arguments; the number of those. */
static unsigned int arguments(const struct value *v, unsigned int n, uint64_t ctx[1 + MAX_ARGS])
{
	memset(ctx, 0, (1 + MAX_ARGS) * sizeof(*ctx));
	for (unsigned int k = 0; k < n && k < MAX_ARGS; k++)
		ctx[1 + k] = v[k].is_str ? (uint64_t)(uintptr_t)v[k].s : (uint64_t)v[k].i;
	return n;
}

static void do_run(struct run *r, const char *p)
{
	uint64_t ctx[1 + MAX_ARGS];
	struct value v[MAX_VALUES];

	arguments(v, values(r, p, v), ctx);
	if (!run_once(r, ctx))
		complain(r, "cannot run the program: %s", strerror(errno));
	take_records(r);
}

struct parallel {
	struct run *r;
	const uint64_t *ctx;
	int64_t times;
	bool refused;
};

static void *run_often(void *arg)
{
	struct parallel *p = arg;

	if (p->r->in)
		p->refused = !inside_run_often(p->r->in, p->ctx, p->times);
	for (int64_t k = 0; k < p->times && !p->r->in; k++)
		p->refused |= !run_once(p->r, p->ctx);
	return NULL;
}

static void do_parallel(struct run *r, const char *p)
{
	uint64_t ctx[1 + MAX_ARGS];
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v), started = 0;
	struct parallel par[16];
	pthread_t threads[16];

	if (n < 2 || v[0].i < 1 || v[0].i > 16) {
		complain(r, "how many threads, how often?");
		return;
	}
	arguments(v + 2, n - 2, ctx);
	for (; started < (unsigned int)v[0].i; started++) {
		par[started] = (struct parallel){ r, ctx, v[1].i, false };
		if (pthread_create(&threads[started], NULL, run_often, &par[started]))
			break;
	}
	for (unsigned int k = 0; k < started; k++) {
		pthread_join(threads[k], NULL);
		if (par[k].refused)
			complain(r, "cannot run the program");
	}
	take_records(r);
}

static const struct abi_record *next_record(struct run *r, size_t *size)
{
	if (r->nread == r->nrecords) {
		complain(r, "there is no further record");
		return NULL;
	}
	*size = r->record_sizes[r->nread];
	return (const struct abi_record *)r->records[r->nread++];
}

/* The statistic in the record is the words behind "=": how many of @v come before that. */
static unsigned int check_stat(struct run *r, const struct ir_rec *rec, const struct abi_record *h,
			       const struct value *v, unsigned int n)
{
	const uint64_t *words;
	unsigned int equals = 0;

	while (equals < n && !is_equals(&v[equals]))
		equals++;
	if (ir_rec_stat(rec, h, h->size, &words) || n - equals - 1 != ir_stat_words(rec->stat)) {
		complain(r, "no statistic of that size");
		return equals;
	}
	for (unsigned int k = 0; equals + 1 + k < n; k++) {
		if (words[k] != (uint64_t)v[equals + 1 + k].i)
			complain(r, "word %u of the statistic is %" PRId64, k, (int64_t)words[k]);
	}
	return equals;
}

static void do_record(struct run *r, const char *p)
{
	struct ir_value got[IR_MAX_FIELDS];
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);
	const struct ir_rec *rec;
	const struct abi_record *h;
	struct strbuf text = { 0 };
	size_t size;
	bool ok;

	h = next_record(r, &size);
	if (!h || !n)
		return;
	if (h->rec != v[0].i || h->rec >= r->prog->nrecs) {
		complain(r, "the record is of layout %d", (int)h->rec);
		return;
	}
	rec = r->prog->recs[h->rec];
	if (h->size != size || ir_rec_decode(rec, h, size, got) || h->pid != (uint32_t)getpid() || !h->time_ns) {
		complain(r, "a malformed record");
		return;
	}
	if (rec->stat)
		n = check_stat(r, rec, h, v, n);
	ok = n - 1 == rec->nfields;
	for (uint32_t k = 0; ok && k < rec->nfields; k++) {
		show(&text, &got[k]);
		ok = ok && same(&v[1 + k], &got[k]);
	}
	if (!ok)
		complain(r, "the record has%s", strbuf_str(&text));
	strbuf_fini(&text);
}

static void do_error(struct run *r, const char *p)
{
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);
	const struct abi_record *h;
	const int64_t *slot;
	size_t size;

	h = next_record(r, &size);
	if (!h)
		return;
	if (h->rec != ABI_REC_ERROR || size != sizeof(*h) + 8 * ABI_ERROR_SLOTS) {
		complain(r, "the record is of layout %d", (int)h->rec);
		return;
	}
	slot = (const int64_t *)(h + 1);
	if (n < 1 || slot[3] != v[0].i || (n > 1 && slot[4] != v[1].i) || slot[0] != 7)
		complain(r, "the error: probe %" PRId64 " clause %" PRId64 " offset %" PRId64 " fault %" PRId64
			    " value %" PRId64, slot[0], slot[1], slot[2], slot[3], slot[4]);
}

/* The key that the values @v make, in the map it belongs to: the map's number. */
static uint32_t make_key(struct run *r, const struct ir_slot *parts, uint32_t n, uint32_t hidden,
			 const struct value *v, uint32_t first, char *key, size_t room)
{
	uint32_t sizes[IR_KEY_CLASSES], cls = 0, classes;
	size_t at = 0;

	memset(key, 0, room);
	if (hidden) {
		uint64_t thread = (uint64_t)getpid() << 32 | (uint32_t)gettid();

		memcpy(key, &thread, 8);
		at = 8;
	}
	for (uint32_t k = 0; k < n; k++) {
		if (parts[k].type != IR_STR) {
			memcpy(key + at, &v[k].i, 8);
			at += 8;
		}
	}
	for (uint32_t k = 0; k < n; k++) {
		if (parts[k].type == IR_STR && v[k].is_str) {
			memcpy(key + at, v[k].s, strlen(v[k].s) + 1);
			at += strlen(v[k].s) + 1;
		}
	}
	classes = ir_key_sizes(parts, n, hidden, ir_str_room(r->prog), sizes);
	while (cls + 1 < classes && at > sizes[cls])
		cls++;
	return first + cls;
}

/* The value under a key. */
struct search {
	const char *key;
	size_t key_size;
	uint64_t *value;		/* summed over the CPUs, if there is room for words */
	uint32_t words, each;		/* words of it, and from one CPU's value to the next */
	char *bytes;			/* or as it is */
	size_t size;
	unsigned int found;
};

static void look(void *ctx, const void *key, const void *value, unsigned int ncpus)
{
	struct search *s = ctx;

	if (memcmp(key, s->key, s->key_size))
		return;
	s->found++;
	if (s->bytes)
		memcpy(s->bytes, value, s->size);
	for (unsigned int c = 0; c < ncpus && s->value; c++) {
		for (uint32_t w = 0; w < s->words; w++)
			s->value[w] += ((const uint64_t *)value)[c * s->each + w];
	}
}

static void do_map(struct run *r, const char *p)
{
	static char key[1 << 20], value[1 << 17];
	struct search s = { .key = key, .bytes = value };
	struct value v[MAX_VALUES], *want;
	unsigned int n = values(r, p, v);
	const struct ir_map *m;
	uint32_t first, map;
	struct ir_value got = { 0 };

	if (!n || v[0].i < 0 || v[0].i >= r->prog->nmaps) {
		complain(r, "there is no such array");
		return;
	}
	m = r->prog->maps[v[0].i];
	if (n < 1 + m->nkeys + 2 || !is_equals(&v[1 + m->nkeys])) {
		complain(r, "expected the keys, = and a value");
		return;
	}
	want = &v[2 + m->nkeys];
	ebpf_map_maps(r->unit, m, &first);
	map = make_key(r, m->keys, m->nkeys, m->cls == IR_THREAD, v + 1, first, key, sizeof(key));
	s.key_size = r->unit->maps[map].key_size;
	s.size = r->unit->maps[map].value_size;
	each_element(r, map, look, &s);
	if (!s.found) {
		if (!want->is_none)
			complain(r, "no such element");
		return;
	}
	got.type = m->value.type;
	got.s = value + (m->ordered ? ABI_ELEMENT_VALUE : 0);
	memcpy(&got.i, got.s, 8);
	got.i = extended(&m->value, got.i);
	if (want->is_none || !same(want, &got)) {
		struct strbuf text = { 0 };

		show(&text, &got);
		complain(r, "the element is%s", strbuf_str(&text));
		strbuf_fini(&text);
	}
}

static void do_agg(struct run *r, const char *p)
{
	static char key[1 << 20];
	struct search s = { .key = key };
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v), from;
	const struct ir_agg *g;
	uint32_t first, map;

	if (!n || v[0].i < 0 || v[0].i >= r->prog->naggs) {
		complain(r, "there is no such aggregation");
		return;
	}
	g = r->prog->aggs[v[0].i];
	s.words = ir_agg_words(g);
	from = 1 + g->nkeys + 1;
	if (n < from || !is_equals(&v[from - 1])) {
		complain(r, "expected the keys, = and words");
		return;
	}
	ebpf_agg_maps(r->unit, g, &first);
	map = make_key(r, g->keys, g->nkeys, 0, v + 1, first, key, sizeof(key));
	s.key_size = r->unit->maps[map].key_size;
	s.each = (r->unit->maps[map].value_size + 7) / 8;
	s.value = arena_alloc(r->arena, s.words * 8);
	each_element(r, map, look, &s);
	if (n > from && v[from].is_none) {
		if (s.found)
			complain(r, "there is such a key");
		return;
	}
	if (!s.found) {
		complain(r, "no such key");
		return;
	}
	for (unsigned int k = from; k < n; k++) {
		uint32_t w = v[k].indexed ? v[k].index : k - from;

		if (w >= s.words || s.value[w] != (uint64_t)v[k].i)
			complain(r, "word %u is %" PRId64, w, w < s.words ? (int64_t)s.value[w] : 0);
		else
			s.value[w] = 0;
	}
	for (uint32_t w = 0; w < s.words; w++) {
		if (s.value[w])
			complain(r, "word %u is %" PRId64 " still", w, (int64_t)s.value[w]);
	}
}

static void do_global(struct run *r, const char *p)
{
	static const char key[8];
	struct search s = { .key = key, .key_size = 4 };
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);
	struct ir_value got = { 0 };
	uint32_t off = 0;

	if (n != 3 || v[0].i < 0 || v[0].i >= r->prog->nvars) {
		complain(r, "expected a variable, = and a value");
		return;
	}
	s.size = r->unit->maps[EBPF_MAP_GLOBALS].value_size;
	s.bytes = arena_alloc(r->arena, s.size);
	each_element(r, EBPF_MAP_GLOBALS, look, &s);
	if (!s.found) {
		complain(r, "no variables");
		return;
	}
	/* Integers come first (bpf/unit.c). */
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t k = 0; k < r->prog->nvars; k++) {
			const struct ir_var *var = r->prog->vars[k];

			if (var->cls != IR_GLOBAL || (var->slot.type == IR_STR) != pass)
				continue;
			if (k == v[0].i) {
				got.type = var->slot.type;
				got.s = s.bytes + off;
				memcpy(&got.i, s.bytes + off, 8);
				got.i = extended(&var->slot, got.i);
			}
			off += pass ? ir_str_room(r->prog) : 8;
		}
	}
	if (!same(&v[2], &got)) {
		struct strbuf text = { 0 };

		show(&text, &got);
		complain(r, "the variable is%s", strbuf_str(&text));
		strbuf_fini(&text);
	}
}

static void do_drops(struct run *r, const char *p)
{
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);

	if (n != 3 || v[0].i < 0 || v[0].i >= ABI_DROP_MAX || drops(r, (enum abi_drop)v[0].i) != (uint64_t)v[2].i)
		complain(r, "the count is %" PRIu64, n ? drops(r, (enum abi_drop)v[0].i) : 0);
}

static void count(void *ctx, const void *key, const void *value, unsigned int ncpus)
{
	(void)key;
	(void)value;
	(void)ncpus;
	++*(int64_t *)ctx;
}

static void do_entries(struct run *r, const char *p)
{
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);
	int64_t entries = 0;

	if (n != 3 || v[0].i < 0 || v[0].i >= r->unit->nmaps) {
		complain(r, "expected a map, = and a count");
		return;
	}
	each_element(r, (uint32_t)v[0].i, count, &entries);
	if (entries != v[2].i)
		complain(r, "the map has %" PRId64 " elements", entries);
}

/* The bytes of a string of hexadecimal digits. */
static size_t unhex(const char *s, uint8_t *out, size_t room)
{
	size_t n = 0;
	unsigned int byte;

	while (n < room && sscanf(s + 2 * n, "%2x", &byte) == 1)
		out[n++] = (uint8_t)byte;
	return n;
}

static void do_page(struct run *r, const char *p)
{
	uint8_t bytes[4096] = { 0 };
	struct value v[MAX_VALUES];
	size_t n = 0;
	char *end;
	void *at = (void *)(uintptr_t)strtoull(p, &end, 0);
	int prot = PROT_READ | PROT_WRITE;

	end += strspn(end, " ");
	if (!strncmp(end, "none", 4))
		prot = PROT_NONE;
	else if (!strncmp(end, "r ", 2))
		prot = PROT_READ;
	if (values(r, end + strcspn(end, " \n"), v) == 1 && v[0].is_str)
		n = unhex(v[0].s, bytes, sizeof(bytes));
	for (size_t k = n; n && k < sizeof(bytes); k++)
		bytes[k] = bytes[k - n];
	if (mmap(at, sizeof(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		complain(r, "cannot map the page: %s", strerror(errno));
	else
		memcpy(at, bytes, sizeof(bytes));
	mprotect(at, sizeof(bytes), prot);
}

static void do_bytes(struct run *r, const char *p)
{
	uint8_t bytes[4096];
	struct value v[MAX_VALUES];
	size_t n;

	if (values(r, p, v) != 2 || !v[1].is_str) {
		complain(r, "expected an address and bytes");
		return;
	}
	n = unhex(v[1].s, bytes, sizeof(bytes));
	for (size_t k = 0; k < n; k++) {
		if (((const uint8_t *)(uintptr_t)v[0].i)[k] != bytes[k]) {
			complain(r, "byte %zu is %02x", k, ((const uint8_t *)(uintptr_t)v[0].i)[k]);
			return;
		}
	}
}

/* Read before anything runs. */
static void do_nothing(struct run *r, const char *p)
{
	(void)r;
	(void)p;
}

static void carry_out(struct run *r, const char *line)
{
	static const struct {
		const char *word;
		void (*fn)(struct run *r, const char *p);
	} verbs[] = {
		{ "run", do_run },	   { "parallel", do_parallel }, { "record", do_record }, { "error", do_error },
		{ "map", do_map },	   { "agg", do_agg },	        { "global", do_global }, { "drops", do_drops },
		{ "entries", do_entries }, { "page", do_page },		{ "bytes", do_bytes },	 { "only", do_nothing },
	};
	size_t len = strcspn(line, " \n");

	for (size_t k = 0; k < sizeof(verbs) / sizeof(verbs[0]); k++) {
		if (strlen(verbs[k].word) == len && !strncmp(verbs[k].word, line, len)) {
			verbs[k].fn(r, line + len);
			return;
		}
	}
	complain(r, "what is %.*s?", (int)len, line);
}

/* --- a file ------------------------------------------------------------------------------------------ */

static char *read_file(struct arena *a, const char *path)
{
	struct source *src;

	return source_read(a, path, &src) ? NULL : (char *)src->text;
}

static bool prepare(struct run *r, const char *text)
{
	struct ebpf_sizes sizes = { .bufsize = 1 << 20, .aggsize = 1 << 20, .dynvarsize = 1 << 20, .nprobes = 2,
				    .ncpus = 4 };
	const char *err, *refused = strstr(text, "#: refused ");

	r->prog = ir_read(r->arena, text, &err);
	if (r->prog)
		err = ir_check(r->prog);
	if (!err)
		r->unit = ebpf_unit_new(r->prog, &sizes, &err);
	if (err) {
		char *want = refused ? arena_strndup(r->arena, refused + 11, strcspn(refused + 11, "\n")) : NULL;

		if (!want || !strstr(err, want))
			complain(r, "%s", err);
		return false;
	}
	if (refused)
		complain(r, "nothing was refused");
	r->clauses = arena_alloc(r->arena, r->prog->nclauses * sizeof(*r->clauses) + 1);
	r->errors = arena_alloc(r->arena, r->prog->nclauses * sizeof(*r->errors) + 1);
	for (uint32_t k = 0; k < r->prog->nclauses; k++) {
		struct ir_clause *c = r->prog->clauses[k];

		if (c->ndescs && !strcmp(c->descs[0].name, "ERROR"))
			r->errors[r->nerrors++] = c;
		else
			r->clauses[r->nclauses++] = c;
	}
	return true;
}

/* May the file's program run in this way? */
static bool may_run(const char *text, enum way way)
{
	const char *only = strstr(text, "#: only ");
	size_t len = strlen(way_names[way]);

	if (!only)
		return true;
	for (only += 8; *only && *only != '\n'; only += strcspn(only, " \n")) {
		only += strspn(only, " ");
		if (!strncmp(only, way_names[way], len) && strchr(" \n", only[len]))
			return true;
		if (!strncmp(only, "because", 7))
			break;
	}
	return false;
}

/* The values of one CPU are those of the key, unless several threads run. */
static void stay(const char *text)
{
	cpu_set_t all, one;

	if (strstr(text, "#: parallel") || sched_getaffinity(0, sizeof(all), &all))
		return;
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &one);
			break;
		}
	}
	sched_setaffinity(0, sizeof(one), &one);
}

static bool open_way(struct run *r)
{
	struct inside_code code = { r->unit, r->clauses, r->errors, r->nclauses, r->nerrors, probes,
				    sizeof(probes) / sizeof(probes[0]) };
	char *err;

	if (r->way < INTERPRETED) {
		if (open_maps(r))
			load_all(r);
		return r->prog_fd >= 0;
	}
	r->in = inside_open(&code, r->way == COMPILED, &err);
	if (!r->in) {
		complain(r, "%s", err);
		free(err);
	}
	return r->in != NULL;
}

static unsigned int run_file(const char *path, enum way way, bool verbose, bool once)
{
	struct run r = { .path = path, .prog_fd = -1, .way = way, .verbose = verbose, .once = once };
	char *text;

	r.arena = arena_new();
	memset(r.fds, -1, sizeof(r.fds));
	text = read_file(r.arena, path);
	if (!text) {
		complain(&r, "cannot read it");
	} else if (may_run(text, way) && prepare(&r, text) && open_way(&r)) {
		stay(text);
		for (char *p = text; p; p = strchr(p, '\n')) {
			p += *p == '\n';
			r.line++;
			if (!strncmp(p, "#: ", 3))
				carry_out(&r, p + 3);
		}
		if (r.nread < r.nrecords)
			complain(&r, "%zu records more than expected, of layout %d", r.nrecords - r.nread,
				 (int)((struct abi_record *)r.records[r.nread])->rec);
	}
	ring_buffer__free(r.ring);
	if (r.control)
		munmap(r.control, sizeof(*r.control));
	if (r.prog_fd >= 0)
		close(r.prog_fd);
	for (int k = 0; k < MAX_MAPS; k++) {
		if (r.fds[k] >= 0)
			close(r.fds[k]);
	}
	inside_close(r.in);
	arena_free(r.arena);
	return r.failures;
}

int main(int argc, char **argv)
{
	unsigned int failed = 0, wanted = 0;
	bool verbose = false, once = false, kernel = has_kernel(), skipped = false;
	int c;

	while ((c = getopt(argc, argv, "v1w:")) != -1) {
		switch (c) {
		case 'v':
			verbose = true;
			break;
		case '1':
			once = true;
			break;
		default:
			for (unsigned int k = 0; k < WAYS; k++)
				wanted |= c == 'w' && !strcmp(optarg, way_names[k]) ? 1u << k : 0;
			if (!wanted) {
				fprintf(stderr, "usage: ir_run [-v] [-1] [-w WAY]... FILE...\n");
				return 2;
			}
		}
	}
	for (int k = optind; k < argc; k++) {
		for (unsigned int way = 0; way < WAYS; way++) {
			if ((wanted && !(wanted >> way & 1)) || (way == KERNEL && !has_may_goto()))
				continue;
			if (way <= TURNS && !kernel) {
				printf("%s: skipped: the kernel refuses BPF\n", argv[k]);
				skipped = true;
				continue;
			}
			failed += run_file(argv[k], (enum way)way, verbose, once);
		}
	}
	if (failed)
		return 1;
	return skipped ? 77 : 0;
}
