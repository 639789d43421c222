#include "place/target.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "place/named.h"
#include "place/segment.h"

/* At most that many: anybody can create domains, and each takes memory. */
enum { SEGMENTS = 64 };

struct loaded {
	const struct ebpf_prog *prog;
	struct vm_prog *vm;		/* NULL before the place is ready */
	bool ran;			/* in this process */
};

struct target_place {
	struct place place;
	const struct ebpf_unit *unit;
	struct layout layout;
	struct abi_probe *probes;
	struct loaded *progs;
	size_t nprogs, progs_cap;
	struct abi_fire *fires;
	size_t nfires, fires_cap;
	struct abi_wanted *wanted;
	size_t nwanted, wanted_cap;
	struct segment *segments[SEGMENTS];	/* the first is also used by the tracer */
	size_t nsegments;
	struct arena *arena;		/* of a unit of its own, or NULL */
	struct abi_prog *placed;	/* position of each program in an image; NULL before the place is ready */
	uint64_t image_size, id;
	uint32_t flags;
	struct shm_run run;
	struct checked *checked;
	struct named named;
	struct strbuf texts;		/* patterns of functions by name */
	uint64_t texts_off;
	struct segment_own own;
	bool is_ready;
	int woken;			/* epoll descriptor of all segments' woken_fd */
};

static struct target_place *of(struct place *place)
{
	return (struct target_place *)place;
}

static struct segment *home(const struct target_place *t)
{
	return t->segments[0];
}

/* --- until it is ready -------------------------------------------------------------------------------- */

static void free_place(struct place *place)
{
	struct target_place *t = of(place);

	for (size_t i = 0; i < t->nprogs; i++)
		vm_free(t->progs[i].vm);
	shm_run_fini(&t->run);
	for (size_t i = 0; i < t->nsegments; i++) {
		segment_fini(t->segments[i]);
		free(t->segments[i]);
	}
	if (t->woken >= 0)
		close(t->woken);
	checked_free(t->checked);
	named_fini(&t->named);
	strbuf_fini(&t->texts);
	layout_fini(&t->layout);
	free(t->placed);
	free(t->probes);
	arena_free(t->arena);
	free(t->progs);
	free(t->fires);
	free(t->wanted);
	free(t);
}

static const struct abi_probe *named(const struct place *place, uint32_t probe)
{
	return named_get(&((const struct target_place *)place)->named, probe);
}

static int set_probe(struct place *place, uint32_t index, const struct abi_probe *probe)
{
	of(place)->probes[index] = *probe;
	return 0;
}

static int load(struct place *place, const struct ebpf_prog *prog, bool multi, struct strbuf *err, struct strbuf *log)
{
	struct target_place *t = of(place);

	(void)multi;
	(void)log;
	if (t->nprogs == ABI_MAX_PROGS) {
		strbuf_puts(err, "too many probes for the target place: use -x place=kernel");
		return -E2BIG;
	}
	if (!grow_array(&t->progs, &t->progs_cap, t->nprogs, sizeof(*t->progs))) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	t->progs[t->nprogs] = (struct loaded){ .prog = prog };
	return (int)t->nprogs++;
}

/* Add @text to the image's texts.  Returns its offset. */
static uint32_t add_text(struct target_place *t, const char *text)
{
	uint32_t at = (uint32_t)t->texts.len;

	if (text)
		strbuf_add(&t->texts, text, strlen(text) + 1);
	return at;
}

static bool add_wanted(struct target_place *t, const struct place_marker *m)
{
	for (uint32_t k = 0; k < m->nwanted; k++) {
		const struct ebpf_wanted *w = &m->wanted[k];

		if (!grow_array(&t->wanted, &t->wanted_cap, t->nwanted, sizeof(*t->wanted)))
			return false;
		t->wanted[t->nwanted] = w->abi;
		if (w->text)
			t->wanted[t->nwanted].name = add_text(t, w->text);
		t->nwanted++;
	}
	return true;
}

/* What its program does. */
static void add_known(struct abi_fire *f, const struct ebpf_known *known)
{
	f->known = known->what;
	if (known->what == ABI_KNOWN_RECORD) {
		f->rec = known->rec;
		f->rec_fields = known->fields;
		f->rec_nfields = known->nfields;
		f->rec_strsize = known->strsize;
	} else {
		f->lap_map = known->map;
		f->lap_classes = known->classes;
		f->lap_threads = known->threads;
		f->lap_last = known->last;
		f->lap_frames = known->frames;
	}
}

static int arm_marker(struct place *place, int prog, const struct place_marker *m, struct strbuf *err)
{
	struct target_place *t = of(place);

	uint32_t wanted = (uint32_t)t->nwanted;

	if (!grow_array(&t->fires, &t->fires_cap, t->nfires, sizeof(*t->fires)) || !add_wanted(t, m)) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	t->fires[t->nfires++] = (struct abi_fire){ .marker = m->marker, .prog = (uint32_t)prog, .probe = m->probe,
						   .pid = m->pid, .uses = m->uses, .count_arg = m->count_arg,
						   .count_map = m->count_map, .count_classes = m->count_classes,
						   .module = add_text(t, m->module), .function = add_text(t, m->function),
						   .file = m->file ? add_text(t, m->file) : 0,
						   .line = m->line, .by_script = m->by_script, .from_first = m->from_first,
						   .wanted = wanted, .nwanted = m->nwanted };
	add_known(&t->fires[t->nfires - 1], &m->known);
	return 0;
}

/* --- the image ---------------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Set the offsets of everything in the image; returns the image's size. */
static uint64_t place_in_image(struct target_place *t, struct abi_prog *progs)
{
	uint64_t at = sizeof(struct abi_image) + t->unit->nmaps * sizeof(struct abi_map) +
		      t->nprogs * sizeof(struct abi_prog) + t->nfires * sizeof(struct abi_fire) +
		      t->nwanted * sizeof(struct abi_wanted);

	t->texts_off = at;
	at += t->texts.len;
	for (size_t i = 0; i < t->nprogs; i++) {
		progs[i] = (struct abi_prog){ .off = round_up(at, 8), .ninsns = t->progs[i].prog->ninsns };
		at = progs[i].off + progs[i].ninsns * sizeof(struct bpf_insn);
	}
	for (uint32_t i = 0; i < t->unit->nmaps; i++) {
		struct abi_map *m = &t->layout.maps[i];

		if (m->kind == ABI_MAP_IMAGE) {
			m->off = round_up(at, 64);
			at = m->off + m->size;
		}
	}
	return round_up(at, ABI_ALIGN);
}

/* The number of a map as in struct abi_image. */
static uint16_t map_number(const struct target_place *t, uint32_t map)
{
	return t->layout.maps[map].kind == ABI_MAP_NONE ? 0 : (uint16_t)(map + 1);
}

struct filling {
	const struct target_place *t;
	uint64_t number;
};

static void fill_image(void *ctx, uint8_t *image)
{
	const struct filling *f = ctx;
	const struct target_place *t = f->t;
	const struct abi_prog *progs = t->placed;
	const struct layout *l = &t->layout;
	uint8_t *at = image + sizeof(struct abi_image);

	*(struct abi_image *)image = (struct abi_image){
		.magic = ABI_SEGMENT_MAGIC, .version = ABI_VERSION, .size = t->image_size,
		.data_size = l->data_size, .nmaps = t->unit->nmaps, .nprogs = (uint32_t)t->nprogs,
		.nfires = (uint32_t)t->nfires, .nlanes = l->nlanes, .lanes_off = l->lanes_off,
		.lane_size = l->lane_size, .flags = t->flags,
		.ranges = map_number(t, EBPF_MAP_RANGES), .unwind = map_number(t, EBPF_MAP_UNWIND),
		.id = t->id, .number = f->number,
		.texts_off = t->texts.len ? (uint32_t)t->texts_off : 0, .texts_size = (uint32_t)t->texts.len,
		.probes = t->unit->nnamed ? map_number(t, EBPF_MAP_PROBES) : 0, .nprobes = t->named.first,
		.nwanted = (uint32_t)t->nwanted,
	};
	memcpy(at, l->maps, t->unit->nmaps * sizeof(*l->maps));
	at += t->unit->nmaps * sizeof(*l->maps);
	if (t->nprogs)
		memcpy(at, progs, t->nprogs * sizeof(*progs));
	at += t->nprogs * sizeof(*progs);
	if (t->nfires)
		memcpy(at, t->fires, t->nfires * sizeof(*t->fires));
	at += t->nfires * sizeof(*t->fires);
	if (t->nwanted)
		memcpy(at, t->wanted, t->nwanted * sizeof(*t->wanted));
	if (t->texts.len)
		memcpy(image + t->texts_off, t->texts.s, t->texts.len);
	for (size_t i = 0; i < t->nprogs; i++) {
		const struct ebpf_prog *p = t->progs[i].prog;
		struct bpf_insn *insns = (struct bpf_insn *)(image + progs[i].off);

		memcpy(insns, p->insns, p->ninsns * sizeof(*insns));
		for (uint32_t r = 0; r < p->nrelocs; r++)
			insns[p->relocs[r].insn].imm = (int32_t)p->relocs[r].map;
	}
	for (uint32_t i = 0; i < t->unit->nmaps; i++) {
		const struct abi_map *m = &l->maps[i];

		if (i == EBPF_MAP_PROBES && m->kind == ABI_MAP_IMAGE)
			memcpy(image + m->off, t->probes, m->size);
		else if (m->kind == ABI_MAP_IMAGE)
			memcpy(image + m->off, t->unit->maps[i].init, m->value_size);
	}
}

/* Word why @prog cannot be loaded, with the clause's position if it is known. */
static void say_refused(const struct ebpf_prog *prog, const struct vm_error *why, struct strbuf *err)
{
	const struct ebpf_line *line = ebpf_line_find(prog, why->insn);

	strbuf_puts(err, "the target place refuses the program");
	if (line && line->pos.src && line->pos.line)
		strbuf_printf(err, " for clause %u (%s:%u:%u)", line->clause + 1, line->pos.src->name, line->pos.line,
			      line->pos.col);
	strbuf_printf(err, ": %s (instruction %u)", why->text, why->insn);
}

/* Load all programs, also those that only targets run, to report here what the engine there would refuse. */
static int load_all(struct target_place *t, struct strbuf *err)
{
	struct vm_error why;

	for (size_t i = 0; i < t->nprogs; i++) {
		int e = shm_load(&home(t)->shm, (uint32_t)i, SHM_BUDGET_TRACER, &t->progs[i].vm, &why);

		if (e == -EINVAL)
			say_refused(t->progs[i].prog, &why, err);
		else if (e)
			strbuf_puts(err, "out of memory");
		if (e)
			return e;
	}
	return 0;
}

static uint64_t process_start(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Finish segment number @number. */
static int finish(struct target_place *t, struct segment *s, uint64_t number, struct strbuf *err)
{
	struct filling f = { t, number };
	const char *why;
	int e = segment_finish(s, t->image_size, fill_image, &f, &why);

	if (e)
		strbuf_printf(err, "cannot make the memory to be shared with the target: %s", why);
	else if (t->unit->nnamed)
		memcpy(s->data + t->layout.maps[EBPF_MAP_PROBES].off, t->probes, t->named.first * sizeof(*t->probes));
	return e;
}

static int ready(struct place *place, struct strbuf *err)
{
	struct target_place *t = of(place);
	int e;

	t->placed = calloc(t->nprogs + 1, sizeof(*t->placed));
	if (!t->placed) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	t->image_size = place_in_image(t, t->placed);
	e = finish(t, home(t), 0, err);
	if (!e) {
		e = shm_run_init(&t->run, &home(t)->shm, 0, (uint32_t)getpid(), process_start());
		if (e)
			strbuf_puts(err, "out of memory");
	}
	t->is_ready = !e;
	return e ? e : load_all(t, err);
}

/* --- while it runs ------------------------------------------------------------------------------------ */

/* The state lets no program start any more: wait until none is running, a tenth of a second at most. */
static void disarm(struct place *place)
{
	struct target_place *t = of(place);
	const struct timespec wait = { .tv_nsec = 100000 };

	size_t n = 0;

	for (int k = 0; t->is_ready && k < 1000 && n < t->nsegments; k++) {
		while (n < t->nsegments && !shm_busy(&t->segments[n]->shm))
			n++;
		if (n < t->nsegments)
			nanosleep(&wait, NULL);
	}
}

static int run(struct place *place, int prog, uint32_t probe, const uint64_t args[10])
{
	struct target_place *t = of(place);
	uint64_t ctx[11] = { probe };

	/* If there is no executable memory, the program is interpreted. */
	if (!t->progs[prog].ran)
		vm_compile(t->progs[prog].vm);
	t->progs[prog].ran = true;
	memcpy(ctx + 1, args, 10 * sizeof(*args));
	shm_set_tid(&t->run, (uint32_t)syscall(SYS_gettid));
	shm_run_prog(&t->run, t->progs[prog].vm, ctx);
	return 0;
}

static int out_fd(const struct place *place)
{
	return ((const struct target_place *)place)->woken;
}

/* --- what targets write ------------------------------------------------------------------------------- */

static void publish(struct target_place *t)
{
	for (size_t i = 0; i < t->nsegments; i++)
		segment_publish(t->segments[i], &t->own);
}

static void set_state(struct place *place, enum abi_state state)
{
	of(place)->own.state = state;
	publish(of(place));
}

static void set_walltime(struct place *place, uint64_t off_ns)
{
	of(place)->own.walltime_off_ns = off_ns;
	publish(of(place));
}

static void told(struct place *place, struct place_told *ret)
{
	struct target_place *t = of(place);

	*ret = (struct place_told){ .over = false };
	for (size_t i = 0; i < t->nsegments; i++) {
		const struct place_told *one = &t->segments[i]->told;

		segment_hear(t->segments[i], &t->own, place->events_end);
		for (int k = 0; k < ABI_DROP_MAX; k++)
			ret->drops[k] += one->drops[k];
		ret->bad += one->bad;
		ret->errors += one->errors;
		ret->over |= one->over;
		ret->interpreted = ret->interpreted ? ret->interpreted : one->interpreted;
	}
}

static int drain(struct place *place, int (*record)(void *ctx, const struct record *rec), void *ctx)
{
	struct target_place *t = of(place);
	int all = 0, full = 0;

	for (size_t i = 0; i < t->nsegments; i++) {
		int n = segment_drain(t->segments[i], record, ctx);

		/* -EAGAIN: @record accepts no more of this domain; continue with the others. */
		if (n == -EAGAIN)
			full = n;
		else if (n < 0)
			return n;
		else
			all += n;
	}
	return full ? full : all;
}

static int map_each(struct place *place, uint32_t map,
		    void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx)
{
	struct target_place *t = of(place);
	int e = 0;

	for (size_t i = 0; i < t->nsegments && !e; i++)
		e = segment_each(t->segments[i], map, each, ctx);
	return e;
}

static int map_set(struct place *place, uint32_t map, const void *key, const void *value)
{
	struct target_place *t = of(place);
	int e = 0;

	for (size_t i = 0; i < t->nsegments && !e; i++)
		e = shm_map_set(&t->segments[i]->shm, map, key, value);
	return e;
}

static int map_write(struct place *place, uint32_t map, size_t off, const void *bytes, size_t n)
{
	struct target_place *t = of(place);
	const struct shm_map *m = &home(t)->shm.maps[map];

	if (m->kind != ABI_MAP_ARRAY || m->max_entries != 1 || off > m->value_size || n > m->value_size - off)
		return -EINVAL;
	for (size_t i = 0; i < t->nsegments; i++)
		memcpy(t->segments[i]->data + m->off + off, bytes, n);
	return 0;
}

static void costs(struct place *place, void (*each)(void *ctx, const struct place_cost *cost), void *ctx)
{
	struct target_place *t = of(place);

	for (size_t i = 0; i < t->nsegments; i++)
		segment_costs(t->segments[i], each, ctx);
}

static void forget_threads(struct place *place, uint32_t pid)
{
	struct target_place *t = of(place);

	for (uint32_t map = 0; map < t->unit->nmaps; map++)
		for (size_t i = 0; i < t->nsegments && layout_is_thread_map(t->unit, map); i++)
			segment_clear(t->segments[i], map, pid);
}

/* Has process @pid mapped the data of one of the first @n segments? */
static bool maps_one_of(const struct target_place *t, size_t n, uint32_t pid)
{
	unsigned int major, minor;
	unsigned long long ino;
	char line[512];
	bool found = false;
	struct stat st;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%u/maps", pid);
	f = fopen(line, "re");
	/* The rest of a line that does not fit is read as another line, which does not match the format. */
	while (f && !found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*x-%*x %*4s %*x %x:%x %llu", &major, &minor, &ino) != 3)
			continue;
		for (size_t i = 0; i < n && !found; i++)
			found = !fstat(t->segments[i]->data_fd, &st) && ino == st.st_ino && makedev(major, minor) == st.st_dev;
	}
	if (f)
		fclose(f);
	return found;
}

static bool is_inside(struct place *place, uint32_t pid)
{
	return maps_one_of(of(place), of(place)->nsegments, pid);
}

uint64_t target_place_id(const struct place *p)
{
	return ((const struct target_place *)p)->id;
}

bool target_place_is_home(const struct place *p, uint32_t pid)
{
	return maps_one_of((const struct target_place *)p, 1, pid);
}

static int map_delete(struct place *place, uint32_t map, const void *key)
{
	struct target_place *t = of(place);
	int ret = -ENOENT;

	for (size_t i = 0; i < t->nsegments; i++) {
		int e = shm_map_delete(&t->segments[i]->shm, map, key);

		if (e && e != -ENOENT)
			return e;
		ret = e ? ret : 0;
	}
	return ret;
}

/* --- domains ------------------------------------------------------------------------------------------ */

static int add_segment(struct target_place *t)
{
	struct epoll_event news = { .events = EPOLLIN };
	struct segment *s = malloc(sizeof(*s));
	int e;

	if (!s)
		return -ENOMEM;
	e = segment_init(s, &t->layout, t->checked, &t->named);
	if (!e && epoll_ctl(t->woken, EPOLL_CTL_ADD, s->woken_fd, &news))
		e = -errno;
	if (e) {
		segment_fini(s);
		free(s);
		return e;
	}
	t->segments[t->nsegments++] = s;
	return 0;
}

static void copy_element(void *ctx, const void *key, const void *value, unsigned int ncpus)
{
	struct segment *to = ctx;

	(void)ncpus;
	shm_map_set(&to->shm, EBPF_MAP_RANGES, key, value);
}

/* Copy the data about processes that the tracer has written so far. */
static void copy_told(struct target_place *t, struct segment *to)
{
	const struct shm_map *m = &home(t)->shm.maps[EBPF_MAP_UNWIND];

	if (m->kind != ABI_MAP_ARRAY)
		return;
	memcpy(to->data + m->off, home(t)->data + m->off, m->size);
	segment_each(home(t), EBPF_MAP_RANGES, copy_element, to);
}

static struct segment *new_segment(struct target_place *t, struct strbuf *why)
{
	struct segment *s;
	int e;

	if (t->nsegments == SEGMENTS) {
		strbuf_printf(why, "there are %d trust domains already", SEGMENTS);
		return NULL;
	}
	e = add_segment(t);
	if (e) {
		strbuf_puts(why, strerror(-e));
		return NULL;
	}
	s = t->segments[t->nsegments - 1];
	if (finish(t, s, t->nsegments - 1, why)) {
		segment_fini(s);
		free(s);
		t->nsegments--;
		return NULL;
	}
	copy_told(t, s);
	segment_publish(s, &t->own);
	return s;
}

/* The segment of @domain, or NULL. */
static struct segment *find_segment(struct target_place *t, const struct domain *domain)
{
	for (size_t i = 0; i < t->nsegments; i++)
		if (t->segments[i]->has_domain && domain_same(&t->segments[i]->domain, domain))
			return t->segments[i];
	return NULL;
}

int target_place_segment(struct place *place, const struct domain *domain, bool alone, struct target_place_fds *ret,
			 struct strbuf *why)
{
	struct target_place *t = of(place);
	struct segment *s = find_segment(t, domain);
	struct domain own;
	bool is_own = !domain_of(getpid(), &own) && domain_same(&own, domain);

	if (!s && !home(t)->has_domain && (is_own || alone))
		s = home(t);
	if (!s && alone)
		return -EXDEV;
	if (!s)
		s = new_segment(t, why);
	if (!s)
		return -ENOSPC;
	s->has_domain = true;
	s->domain = *domain;
	s->is_foreign = !is_own;
	*ret = (struct target_place_fds){ s->image_fd, s->data_fd, s->wake_fd };
	return 0;
}

/* --- the place ---------------------------------------------------------------------------------------- */

static const struct place_ops ops = {
	.free = free_place,
	.set_state = set_state,
	.set_walltime = set_walltime,
	.told = told,
	.named = named,
	.set_probe = set_probe,
	.load = load,
	.arm_marker = arm_marker,
	.ready = ready,
	.disarm = disarm,
	.run = run,
	.out_fd = out_fd,
	.drain = drain,
	.map_each = map_each,
	.map_write = map_write,
	.map_set = map_set,
	.costs = costs,
	.forget_threads = forget_threads,
	.is_inside = is_inside,
	.map_delete = map_delete,
};

/* What its programs use: of ABI_SEGMENT_*. */
static uint32_t flags_of(const struct ebpf_unit *unit)
{
	return (unit->maps[EBPF_MAP_STACKS].type != BPF_MAP_TYPE_UNSPEC ? ABI_SEGMENT_STACKS : 0) |
	       (unit->asks_values ? ABI_SEGMENT_VALUES : 0) |
	       (unit->asks_tasks ? ABI_SEGMENT_TASKS : 0) | (unit->is_apart ? ABI_SEGMENT_APART : 0) |
	       (unit->maps[EBPF_MAP_VTIMES].type != BPF_MAP_TYPE_UNSPEC ? ABI_SEGMENT_VTIME : 0) |
	       (unit->maps[EBPF_MAP_PYTHONS].type != BPF_MAP_TYPE_UNSPEC ? ABI_SEGMENT_PYTHON : 0);
}

bool target_place_runs_later(const struct ebpf_unit *unit)
{
	return !(flags_of(unit) & SHM_NOW);
}

int target_place_new(const struct ebpf_unit *unit, bool wait, unsigned int processes, struct place **ret,
		     struct strbuf *err)
{
	struct target_place *t = calloc(1, sizeof(*t));
	int e = -ENOMEM;

	if (!t) {
		strbuf_puts(err, "out of memory");
		return e;
	}
	t->place = (struct place){ .ops = &ops, .in_target = true };
	t->unit = unit;
	t->named.first = unit->maps[EBPF_MAP_PROBES].max_entries - unit->nnamed;
	t->flags = (wait ? ABI_SEGMENT_WAIT : 0) | flags_of(unit);
	if (getrandom(&t->id, sizeof(t->id), GRND_NONBLOCK) < 0)
		t->id = (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)t;
	t->woken = epoll_create1(EPOLL_CLOEXEC);
	t->probes = calloc(t->named.first, sizeof(*t->probes));
	t->checked = checked_new(unit);
	if (t->probes && t->checked)
		e = unit->nmaps > ABI_MAX_MAPS ? -ENFILE : layout_make(unit, processes, &t->layout);
	if (!e)
		e = t->woken < 0 ? -EMFILE : add_segment(t);
	if (e) {
		strbuf_printf(err, "cannot make the memory to be shared with the target: %s", e == -E2BIG ?
			      "it would be too large; lower aggsize, dynvarsize or bufsize" : e == -ENFILE ?
			      "the script has too many arrays and aggregations; the kernel has room: -x place=kernel" :
			      e == -ENOMEM && proc_is_limited(0) ?
			      "this process's address space is too limited; raise ulimit -v, or lower aggsize, dynvarsize or bufsize" :
			      strerror(-e));
		free_place(&t->place);
		return e;
	}
	*ret = &t->place;
	return 0;
}

int target_place_away(bool values, bool tasks, struct place **ret, struct strbuf *err)
{
	const struct ebpf_sizes sizes = { .bufsize = 1024, .nprobes = 1, .ncpus = 1 };
	struct arena *a = arena_new();
	struct ebpf_unit *unit;
	const char *why;
	int e;

	unit = ebpf_unit_new(ir_prog_new(a, 256), &sizes, &why);
	if (!unit) {
		strbuf_puts(err, why);
		arena_free(a);
		return -EINVAL;
	}
	unit->asks_values = values;
	unit->asks_tasks = tasks;
	e = target_place_new(unit, false, 1, ret, err);
	if (e)
		arena_free(a);
	else
		of(*ret)->arena = a;
	return e;
}
