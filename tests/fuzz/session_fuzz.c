/*
 * A session of the target place whose process writes what it likes: all that the tracer makes of it, from the rings, the
 * tables and the control block to the text that is printed, with every kind of action and aggregation.
 *
 * The bytes are commands: fire one of the clauses, write bytes, append a record of one of the program's layouts, let the
 * tracer look.  Of what is read from the segment this driver is for what comes behind the reader (segment_fuzz.c): records
 * that are checked by their layouts, keys and values of aggregations, stacks, code objects and the names made of them, the
 * control block's counts.  What the tracer then asks the system, such as which file an address is in, is answered here
 * (--wrap, meson.build).  Programs are compiled; the next bytes are played on memory as new.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/place/inside.h"
#include "abi/python.h"
#include "out/names.h"
#include "out/sink.h"
#include "probe/procs.h"
#include "probe/symbols.h"
#include "probe/walks.h"
#include "session/form.h"
#include "session/private.h"
#include "vm/ring.h"

#define ENTRY "python123:::function-entry "

/* What runs a command or writes a file is left out. */
static const char script[] =
	"#pragma D option strsize=64\n"
	ENTRY "{ printf(\"%s %d %-10s|%5d %x %c %S %a %*d\\n\", copyinstr(arg1), arg2, copyinstr(arg0), arg2, arg2, arg2,"
	" copyinstr(arg1), arg2, 9, arg2); trace(arg2); trace(copyinstr(arg1)); }"
	ENTRY "{ tracemem(copyin(arg0, 4), 4, arg2); ustack(5); usym(arg1); umod(arg1); uaddr(arg1); }"
	ENTRY "{ @a[copyinstr(arg1)] = count(); @b[arg2, copyinstr(arg0)] = quantize(arg2); @c = lquantize(arg2, 0, 100, 7); }"
	ENTRY "{ @d[ustack(2)] = avg(arg2); @e[pid] = stddev(arg2); @f[copyinstr(arg0)] = min(arg2); @g = max(arg2); }"
	ENTRY "{ @h[copyinstr(arg1), arg2 & 3] = llquantize(arg2, 10, 0, 4, 20); @i[usym(arg1)] = sum(arg2); }"
	ENTRY "{ printa(\"%s %@d\\n\", @a); printa(@b); printa(@h); clear(@a); trunc(@b, arg2); trunc(@i); normalize(@e, arg2); }"
	ENTRY "{ self->s = speculation(); speculate(self->s); printf(\"kept %d\\n\", arg2); }"
	ENTRY "{ commit(self->s); }"
	ENTRY "{ discard(self->s); }"
	ENTRY "{ x[arg2, copyinstr(arg1)] = arg2; @j[x[arg2, copyinstr(arg1)]] = count(); printf(\"%d\", 7 / arg2); }"
	ENTRY "/arg2 == 99/ { exit(arg2); }";

static const struct ebpf_sizes sizes = { .bufsize = 1 << 16, .aggsize = 1 << 12, .dynvarsize = 1 << 12, .nprobes = 1,
					 .ncpus = 2 };

enum { COMMANDS = 24, DIRTY = 3 * COMMANDS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct inside in;
static struct session s;
static struct out_sink out;
static struct symbols *symbols;

static void ignore(void *ctx, const char *text)
{
	(void)ctx;
	*(volatile size_t *)&(size_t){ 0 } = strlen(text);
}

/* --- the system ----------------------------------------------------------------------------------------- */

#define REAL(RETURN, NAME, ...) RETURN __real_##NAME(__VA_ARGS__); RETURN __wrap_##NAME(__VA_ARGS__)

static bool is_on;

REAL(ssize_t, recv, int, void *, size_t, int);
REAL(uint32_t, procs_parent, uint32_t);
REAL(int, procs_key, uint32_t, struct abi_process_key *);
typedef int write_fn(void *ctx, size_t off, const void *bytes, size_t n);
REAL(int, walks_unwind, struct symbols *, uint32_t, struct abi_ranges *, write_fn *, void *);
REAL(void, symbols_user, struct symbols *, uint32_t, uint64_t, struct symbol *);

/* Nobody wakes the tracer. */
ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
	if (!is_on)
		return __real_recv(fd, to, size, flags);
	errno = EAGAIN;
	return -1;
}

uint32_t __wrap_procs_parent(uint32_t pid)
{
	return is_on ? pid / 2 : __real_procs_parent(pid);
}

int __wrap_procs_key(uint32_t pid, struct abi_process_key *ret)
{
	if (!is_on)
		return __real_procs_key(pid, ret);
	memset(ret, (int)pid, sizeof(*ret));
	return pid % 3 ? 0 : -ESRCH;
}

int __wrap_walks_unwind(struct symbols *sy, uint32_t pid, struct abi_ranges *ret, write_fn *write, void *ctx)
{
	if (!is_on)
		return __real_walks_unwind(sy, pid, ret, write, ctx);
	memset(ret, 0, sizeof(*ret));
	return pid % 5 ? 0 : -ESRCH;
}

/* Of what an address is known depends on its last bits: nothing, the file, the function. */
void __wrap_symbols_user(struct symbols *sy, uint32_t pid, uint64_t stack, struct symbol *ret)
{
	static const char *const funcs[] = { "f", "_PyEval_EvalFrameDefault", "g", "malloc" };

	if (!is_on) {
		__real_symbols_user(sy, pid, stack, ret);
		return;
	}
	if (ret->addr % 4 == 0)
		return;
	ret->mod = ret->addr % 8 == 7 ? "dtap-agent.so" : "libpython.so";
	ret->path = "/lib/libpython.so";
	ret->mod_off = ret->addr / 8;
	if (ret->addr % 4 > 1) {
		ret->func = funcs[ret->addr / 8 % 4];
		ret->off = ret->addr / 32 % 3;
		ret->size = 64;
	}
}

static bool is_inside(struct place *place, uint32_t pid)
{
	(void)place;
	return pid % 2;
}

/* --- the session ---------------------------------------------------------------------------------------- */

static void make(void)
{
	static struct options opts;
	static struct place_ops ops;
	static struct enabled enabled;
	static const struct probe probe = { .id = 1, .prov = "python123", .mod = "python3", .func = "f", .name = "function-entry" };

	inside_make_each(&in, script, &sizes, true);
	ops = *in.place->ops;
	ops.is_inside = is_inside;
	in.place->ops = &ops;
	options_init(&opts);
	out_open_mem(&out);
	symbols = symbols_new();
	enabled = (struct enabled){ .probe = &probe, .clauses = in.c.prog->clauses, .nclauses = in.c.prog->nclauses, .epid = 1,
				    .prog = -1 };
	s = (struct session){ .opts = opts, .arena = in.c.prog->arena, .unit = in.unit, .place = in.place, .choice = { .in_target = true },
			      .on = { .v = &enabled, .n = 1 }, .held = { .max = HELD_MAX_BYTES }, .output = { .form = &form_text } };
	s.conf = (struct session_conf){ .opts = &s.opts, .prog = in.c.prog, .out = &out, .command = "dtrace", .message = ignore };
	in.place->events_end = true;
}

/* What one input has from the start. */
static void begin(void)
{
	memset(&s.held.stream, 0, sizeof(s.held.stream));
	s.specs = specs_new((size_t)s.opts.v[OPT_specsize]);
	s.known.names = names_new(symbols, (size_t)s.opts.v[OPT_namesize]);
	s.aggs = aggs_new(in.unit, in.place);
	if (!s.specs || !s.known.names || !s.aggs)
		abort();
	aggs_set_names(s.aggs, s.known.names, session_pull, &s);
	out.names = s.known.names;
	s.finish.is_due = s.finish.exited = false;
	in.place->ops->set_state(in.place, ABI_STATE_ACTIVE);
}

static void end(void)
{
	stream_fini(&s.held.stream);
	specs_free(s.specs);
	aggs_free(s.aggs);
	names_free(s.known.names);
	out_reset(&out);
}

/* --- commands ------------------------------------------------------------------------------------------- */

struct input {
	const uint8_t *at;
	size_t left;
};

static uint64_t number(struct input *i, size_t bytes)
{
	uint64_t v = 0;

	if (bytes > i->left)
		bytes = i->left;
	memcpy(&v, i->at, bytes);
	i->at += bytes;
	i->left -= bytes;
	return v;
}

static struct { uint8_t *at; size_t n; } dirty[DIRTY];
static unsigned int ndirty;
static bool tables[ABI_MAX_MAPS];	/* written to by their own functions */

static void taint(uint8_t *at, size_t n)
{
	dirty[ndirty].at = at;
	dirty[ndirty++].n = n;
}

static void taint_record(const struct shm_map *m, uint64_t before)
{
	const struct abi_lane *lane = (const struct abi_lane *)(const void *)in.run.lane;
	uint64_t bytes = m->max_entries, at = before & (bytes - 1), n = lane->head - before;

	if (n > bytes)
		n = bytes;
	taint(in.run.lane + m->off + at, n < bytes - at ? n : bytes - at);
	taint(in.run.lane + m->off, n < bytes - at ? 0 : n - (bytes - at));
}

static uint8_t *map_at(const struct shm_map *m)
{
	return (m->kind == ABI_MAP_SHARED_HASH ? in.shm.data : in.run.lane) + m->off;
}

/* Whatever has been put in a map is seen at its beginning: a table has taken elements.  Is anything in any of them? */
static bool find_tables(void)
{
	static const struct abi_table none;
	bool any = false;

	for (uint32_t k = 0; k < in.shm.nmaps; k++) {
		const struct shm_map *m = &in.shm.maps[k];
		size_t n = m->kind == ABI_MAP_LANE_ARRAY && m->value_size < sizeof(none) ? m->value_size : sizeof(none);

		tables[k] |= (m->kind == ABI_MAP_LANE_ARRAY || m->kind == ABI_MAP_LANE_HASH || m->kind == ABI_MAP_SHARED_HASH) &&
			     memcmp(map_at(m), &none, n);
		any |= tables[k];
	}
	return any;
}

static const struct shm_map *out_map(void)
{
	const struct shm_map *m = in.shm.maps;

	while (m->kind != ABI_MAP_OUT)
		m++;
	return m;
}

static void fire(struct input *i, uint64_t clause)
{
	static const char *const words[] = { "", "f", "some.py", "a name that is longer than the first class of keys", "g" };
	uint64_t n = number(i, 1), before = ((const struct abi_lane *)(const void *)in.run.lane)->head;

	inside_fire_one(&in, (unsigned int)clause % in.nprogs, words[n % 5], words[n / 5 % 5], (int)number(i, 1));
	taint_record(out_map(), before);
	find_tables();
}

/* In the control block, the lane's header, a table of it, or its ring. */
static uint8_t *somewhere(struct input *i)
{
	uint64_t what = number(i, 1), off = number(i, 2);
	uint8_t *lane = in.run.lane;
	const struct shm_map *m;

	if (what % 8 == 0)
		return in.shm.data + off % sizeof(struct abi_data);
	if (what % 8 == 1)
		return lane + off % sizeof(struct abi_lane);
	m = &in.shm.maps[what / 8 % in.shm.nmaps];
	if (m->kind == ABI_MAP_OUT)
		return lane + m->off + off % 4096;
	if (m->kind == ABI_MAP_LANE_HASH)
		return lane + m->off + (off % 2 ? m->elems_off + off % (4 * m->stride) : off % m->elems_off);
	if (m->kind == ABI_MAP_LANE_ARRAY)
		return lane + m->off + off % m->value_size;
	if (m->kind == ABI_MAP_SHARED_HASH)
		return in.shm.data + m->off + (off % 2 ? m->elems_off + off % (4 * m->stride) : off % sizeof(struct abi_table));
	return lane + off % sizeof(struct abi_lane);
}

static void write_somewhere(struct input *i)
{
	uint8_t *at = somewhere(i);
	size_t n = number(i, 1) % 9;
	uint64_t v = number(i, n);

	taint(at, n);
	memcpy(at, &v, n);
}

/* A record of some layout: slots from the input, then bytes from it. */
static void append(struct input *i)
{
	union { struct abi_record hdr; uint64_t words[400]; uint8_t bytes[3200]; } r = { .words = { 0 } };
	uint64_t which = number(i, 1), n = number(i, 1) % 96, k;
	uint64_t before = ((const struct abi_lane *)(const void *)in.run.lane)->head;

	r.hdr.rec = (uint32_t)(which % (in.c.prog->nrecs + 4) + (which % (in.c.prog->nrecs + 4) < in.c.prog->nrecs ? 0 :
			       (uint64_t)ABI_REC_CODE - in.c.prog->nrecs));
	r.hdr.probe = which == 255;
	for (k = 4; k < 4 + n && i->left; k++) {
		uint64_t how = number(i, 1);

		/* A number, a string's place in the record, or any bytes. */
		r.words[k] = how < 128 ? how : how < 192 ? (32 + 8 * n + how % 32) | (how / 4 % 16 + 1) << 32 : number(i, how % 9);
	}
	if (r.hdr.rec == ABI_REC_CODE && which & 1)
		k = 400;
	else
		k += number(i, 1) % 8;
	memcpy(&r.words[4 + n], i->at, i->left < 64 ? i->left : 64);
	r.hdr.size = (uint32_t)(k * 8 - (which == 254 ? number(i, 2) : 0));
	r.hdr.time_ns = which & 128 ? UINT64_MAX : 0;
	ring_put(out_map(), in.run.lane, &r, (uint32_t)k * 8);
	taint_record(out_map(), before);
}

static void look(struct input *i)
{
	uint64_t n = number(i, 1);
	const struct ir_prog *prog = in.c.prog;
	struct ir_agg *agg = prog->aggs[n / 8 % prog->naggs];

	switch (n % 8) {
	case 0: case 1: case 2:
		session_drain(&s, n & 8);
		break;
	case 3:
		session_report_drops(&s);
		break;
	case 4:
		aggs_stale(s.aggs);
		form_text.act[IR_ACT_PRINTA](&(struct reading){ .s = &s },
					     &(struct ir_act){ .kind = IR_ACT_PRINTA, .aggs = &agg, .naggs = 1 });
		break;
	case 5:
		session_trunc_agg(&s, agg, (int64_t)n / 16 - 4);
		break;
	case 6:
		session_pull(&s);
		break;
	default:
		aggs_normalize(s.aggs, agg, number(i, 8));
	}
}

/* As new. */
static void clean(void)
{
	struct abi_lane *lane = (struct abi_lane *)(void *)in.run.lane;

	memset(in.shm.data + sizeof(struct abi_control), 0, sizeof(struct abi_data) - sizeof(struct abi_control));
	find_tables();
	for (uint32_t k = 0; k < in.shm.nmaps; k++) {
		if (tables[k])
			memset(map_at(&in.shm.maps[k]), 0, in.shm.maps[k].size);
		tables[k] = false;
	}
	while (ndirty) {
		ndirty--;
		memset(dirty[ndirty].at, 0, dirty[ndirty].n);
	}
	memset(lane, 0, sizeof(*lane));
	lane->owner = (uint32_t)getpid();
	lane->owner_start = 1;
	session_pull(&s);		/* it finds that the ring begins anew */
	s.held.stream.n = s.held.stream.len = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input i = { data, size };

	if (!in.place)
		make();
	is_on = true;
	begin();
	for (int k = 0; k < COMMANDS && i.left; k++) {
		uint64_t what = number(&i, 1);

		if (what < 64)
			fire(&i, what);
		else if (what < 128)
			write_somewhere(&i);
		else if (what < 208)
			append(&i);
		else
			look(&i);
	}
	session_drain(&s, true);
	aggs_stale(s.aggs);
	if (find_tables())
		session_print_aggs(&s);
	session_report_drops(&s);
	end();
	clean();
	is_on = false;
	return 0;
}
