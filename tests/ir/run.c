/*
 * run [-v] FILE.ir...: run IR programs in the kernel and check what they leave behind.
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
 *
 * Behind the last line no record may be left.  Every program is also loaded as one for uprobes, sleepable
 * and not, and for perf events; with functions that the kernel looks at with each call, and by themselves; with loops
 * that come round, and with a call for each turn.  Needs CAP_BPF and CAP_PERFMON: exits with 77 without.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
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
#include "ir/layout.h"
#include "place/func_info.h"

enum { MAX_MAPS = 512, MAX_ARGS = 10, MAX_VALUES = 160 };

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
	int fds[MAX_MAPS], prog_fd;
	struct abi_control *control;
	struct ring_buffer *ring;
	char **records;
	size_t *record_sizes;
	size_t nrecords, nread, records_cap, sizes_cap;
	unsigned int failures;
	bool verbose, turns_called;
};

static void complain(struct run *r, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%u: ", r->path, r->line);
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
			int e = errno;

			if (e == EPERM && k == 0) {
				printf("%s: skipped: the kernel refuses BPF: %s\n", r->path, strerror(e));
				exit(77);
			}
			complain(r, "cannot create the map %s: %s", m->name, strerror(e));
			return false;
		}
		if (m->init && (bpf_map_update_elem(r->fds[k], &zero, m->init, 0) || bpf_map_freeze(r->fds[k]))) {
			complain(r, "cannot fill the map %s: %s", m->name, strerror(errno));
			return false;
		}
	}
	return true;
}

static bool open_maps(struct run *r)
{
	struct abi_probe probe = { .id = 7, .epid = 10, .flags = ABI_PROBE_PID_SUFFIX, .prov = "python",
				   .mod = "libpython.so", .func = "eval", .name = "function-entry" };
	struct abi_probe error = { .id = 3, .epid = 20, .prov = "dtrace", .name = "ERROR" };
	uint32_t zero = 0, one = 1;

	if (!create_maps(r))
		return false;
	bpf_map_update_elem(r->fds[EBPF_MAP_PROBES], &zero, &probe, 0);
	bpf_map_update_elem(r->fds[EBPF_MAP_PROBES], &one, &error, 0);
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
	if (fd >= 0 && p->nfuncs && has_globals()) {
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
	int fd;

	env.turns_called = r->turns_called;
	r->prog_fd = load(r, &env, "run");
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

static void show(struct strbuf *b, const struct ir_value *v)
{
	if (v->type == IR_STR)
		strbuf_printf(b, " \"%s\"", v->s);
	else
		strbuf_printf(b, " %" PRId64, v->i);
}

/* --- what the lines say ------------------------------------------------------------------------------- */

static void do_run(struct run *r, const char *p)
{
	uint64_t ctx[1 + MAX_ARGS] = { 0 };
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = sizeof(ctx));

	for (unsigned int k = 0; k < n && k < MAX_ARGS; k++)
		ctx[1 + k] = v[k].is_str ? (uint64_t)(uintptr_t)v[k].s : (uint64_t)v[k].i;
	if (r->prog_fd < 0)
		return;
	if (bpf_prog_test_run_opts(r->prog_fd, &opts))
		complain(r, "cannot run the program: %s", strerror(errno));
	ring_buffer__consume(r->ring);
}

struct parallel {
	int prog_fd;
	int64_t times;
	struct bpf_test_run_opts opts;
	unsigned int refused;
};

static void *run_often(void *arg)
{
	struct parallel *p = arg;

	for (int64_t k = 0; k < p->times; k++)
		p->refused += bpf_prog_test_run_opts(p->prog_fd, &p->opts) != 0;
	return NULL;
}

static void do_parallel(struct run *r, const char *p)
{
	uint64_t ctx[1 + MAX_ARGS] = { 0 };
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v), started = 0;
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = ctx, .ctx_size_in = sizeof(ctx));
	struct parallel par[16];
	pthread_t threads[16];

	if (n < 2 || v[0].i < 1 || v[0].i > 16) {
		complain(r, "how many threads, how often?");
		return;
	}
	for (unsigned int k = 2; k < n && k - 2 < MAX_ARGS; k++)
		ctx[1 + k - 2] = v[k].is_str ? (uint64_t)(uintptr_t)v[k].s : (uint64_t)v[k].i;
	for (; started < (unsigned int)v[0].i; started++) {
		par[started] = (struct parallel){ r->prog_fd, v[1].i, opts, 0 };
		if (pthread_create(&threads[started], NULL, run_often, &par[started]))
			break;
	}
	for (unsigned int k = 0; k < started; k++) {
		pthread_join(threads[k], NULL);
		if (par[k].refused)
			complain(r, "cannot run the program");
	}
	ring_buffer__consume(r->ring);
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

static void do_map(struct run *r, const char *p)
{
	static char key[1 << 20], value[1 << 17];
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
	if (n != 1 + m->nkeys + 2 || !is_equals(&v[1 + m->nkeys])) {
		complain(r, "expected the keys, = and a value");
		return;
	}
	want = &v[n - 1];
	ebpf_map_maps(r->unit, m, &first);
	map = make_key(r, m->keys, m->nkeys, m->cls == IR_THREAD, v + 1, first, key, sizeof(key));
	if (bpf_map_lookup_elem(r->fds[map], key, value)) {
		if (!want->is_none)
			complain(r, "no such element");
		return;
	}
	got.type = m->value.type;
	got.s = value + (m->ordered ? ABI_ELEMENT_VALUE : 0);
	memcpy(&got.i, got.s, 8);
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
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v), from;
	int ncpus = libbpf_num_possible_cpus();
	const struct ir_agg *g;
	uint32_t first, map, words, each;
	uint64_t *raw, *sum;

	if (!n || v[0].i < 0 || v[0].i >= r->prog->naggs) {
		complain(r, "there is no such aggregation");
		return;
	}
	g = r->prog->aggs[v[0].i];
	words = ir_agg_words(g);
	from = 1 + g->nkeys + 1;
	if (n < from || !is_equals(&v[from - 1])) {
		complain(r, "expected the keys, = and words");
		return;
	}
	ebpf_agg_maps(r->unit, g, &first);
	map = make_key(r, g->keys, g->nkeys, 0, v + 1, first, key, sizeof(key));
	each = (r->unit->maps[map].value_size + 7) / 8;
	raw = arena_alloc(r->arena, (size_t)ncpus * each * 8);
	sum = arena_alloc(r->arena, words * 8);
	if (bpf_map_lookup_elem(r->fds[map], key, raw)) {
		complain(r, "no such key");
		return;
	}
	for (int c = 0; c < ncpus; c++) {
		for (uint32_t w = 0; w < words; w++)
			sum[w] += raw[(uint32_t)c * each + w];
	}
	for (unsigned int k = from; k < n; k++) {
		uint32_t w = v[k].indexed ? v[k].index : k - from;

		if (w >= words || sum[w] != (uint64_t)v[k].i)
			complain(r, "word %u is %" PRId64, w, w < words ? (int64_t)sum[w] : 0);
		else
			sum[w] = 0;
	}
	for (uint32_t w = 0; w < words; w++) {
		if (sum[w])
			complain(r, "word %u is %" PRId64 " still", w, (int64_t)sum[w]);
	}
}

static void do_global(struct run *r, const char *p)
{
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);
	uint32_t zero = 0, off = 0;
	struct ir_value got = { 0 };
	char *all;

	if (n != 3 || v[0].i < 0 || v[0].i >= r->prog->nvars) {
		complain(r, "expected a variable, = and a value");
		return;
	}
	all = arena_alloc(r->arena, r->unit->maps[EBPF_MAP_GLOBALS].value_size);
	if (bpf_map_lookup_elem(r->fds[EBPF_MAP_GLOBALS], &zero, all)) {
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
				got.s = all + off;
				memcpy(&got.i, all + off, 8);
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

	if (n != 3 || v[0].i < 0 || v[0].i >= ABI_DROP_MAX || r->control->drops[v[0].i] != (uint64_t)v[2].i)
		complain(r, "the count is %llu", n ? (unsigned long long)r->control->drops[v[0].i] : 0ull);
}

static void do_entries(struct run *r, const char *p)
{
	static char key[1 << 20], after[1 << 20];
	struct value v[MAX_VALUES];
	unsigned int n = values(r, p, v);
	int64_t count = 0;
	bool first = true;

	if (n != 3 || v[0].i < 0 || v[0].i >= r->unit->nmaps) {
		complain(r, "expected a map, = and a count");
		return;
	}
	while (!bpf_map_get_next_key(r->fds[v[0].i], first ? NULL : key, after)) {
		memcpy(key, after, sizeof(key));
		first = false;
		count++;
	}
	if (count != v[2].i)
		complain(r, "the map has %" PRId64 " elements", count);
}

static void carry_out(struct run *r, const char *line)
{
	static const struct {
		const char *word;
		void (*fn)(struct run *r, const char *p);
	} verbs[] = {
		{ "run", do_run },     { "parallel", do_parallel }, { "record", do_record }, { "error", do_error }, { "map", do_map },
		{ "agg", do_agg },     { "global", do_global }, { "drops", do_drops }, { "entries", do_entries },
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

static unsigned int run_file(const char *path, bool verbose, bool turns_called)
{
	struct run r = { .path = path, .prog_fd = -1, .verbose = verbose, .turns_called = turns_called };
	char *text;

	r.arena = arena_new();
	memset(r.fds, -1, sizeof(r.fds));
	text = read_file(r.arena, path);
	if (!text) {
		complain(&r, "cannot read it");
	} else if (prepare(&r, text) && open_maps(&r)) {
		load_all(&r);
		for (char *p = text; p && r.prog_fd >= 0; p = strchr(p, '\n')) {
			p += *p == '\n';
			r.line++;
			if (!strncmp(p, "#: ", 3))
				carry_out(&r, p + 3);
		}
		if (r.nread < r.nrecords && r.prog_fd >= 0)
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
	arena_free(r.arena);
	return r.failures;
}

int main(int argc, char **argv)
{
	unsigned int failed = 0;
	bool verbose = false;

	for (int k = 1; k < argc; k++) {
		if (!strcmp(argv[k], "-v"))
			verbose = true;
		else
			failed += (has_may_goto() && run_file(argv[k], verbose, false)) ||
				  run_file(argv[k], verbose, true);
	}
	return failed ? 1 : 0;
}
