#include "place/target.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "place/clock.h"
#include "place/layout.h"
#include "vm/shm.h"

struct loaded {
	const struct ebpf_prog *prog;
	struct vm_prog *vm;		/* once the place is ready */
	bool ran;			/* here */
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
	int image_fd, data_fd;
	int wake_fd, woken_fd;		/* ends of a pair of sockets: what targets write to, and what comes out */
	uint8_t *data;
	void *image;			/* NULL until ready */
	uint64_t image_size;
	uint32_t flags;
	struct shm shm;
	struct shm_run run;
	struct clock clock;
	uint64_t failed, unserved;	/* of struct abi_data, told so far */
};

static struct target_place *of(struct place *place)
{
	return (struct target_place *)place;
}

static struct abi_data *data_of(const struct target_place *t)
{
	return (struct abi_data *)t->data;
}

/* --- before it is ready ------------------------------------------------------------------------------- */

static void free_place(struct place *place)
{
	struct target_place *t = of(place);

	for (size_t i = 0; i < t->nprogs; i++)
		vm_free(t->progs[i].vm);
	shm_run_fini(&t->run);
	shm_fini(&t->shm);
	if (t->image)
		munmap(t->image, t->image_size);
	if (t->data)
		munmap(t->data, t->layout.data_size);
	for (int k = 0; k < 4; k++) {
		int fd = (int[]){ t->image_fd, t->data_fd, t->wake_fd, t->woken_fd }[k];

		if (fd >= 0)
			close(fd);
	}
	layout_fini(&t->layout);
	free(t->probes);
	free(t->progs);
	free(t->fires);
	free(t);
}

static struct abi_control *control(struct place *place)
{
	return &data_of(of(place))->control;
}

static int set_probe(struct place *place, uint32_t index, const struct abi_probe *probe)
{
	of(place)->probes[index] = *probe;
	return 0;
}

/* Room for one more in the array *v of elements of @size bytes. */
static bool grow(void *v, size_t *cap, size_t n, size_t size)
{
	size_t more = *cap ? *cap * 2 : 16;
	void *p;

	if (n < *cap)
		return true;
	memcpy(&p, v, sizeof(p));
	p = realloc(p, more * size);
	if (!p)
		return false;
	memcpy(v, &p, sizeof(p));
	*cap = more;
	return true;
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
	if (!grow(&t->progs, &t->progs_cap, t->nprogs, sizeof(*t->progs))) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	t->progs[t->nprogs] = (struct loaded){ .prog = prog };
	return (int)t->nprogs++;
}

static int arm_marker(struct place *place, int prog, const struct place_marker *m, struct strbuf *err)
{
	struct target_place *t = of(place);

	if (!grow(&t->fires, &t->fires_cap, t->nfires, sizeof(*t->fires))) {
		strbuf_puts(err, "out of memory");
		return -ENOMEM;
	}
	t->fires[t->nfires++] = (struct abi_fire){ .marker = m->marker, .prog = (uint32_t)prog, .probe = m->probe,
						   .pid = m->pid, .uses = m->uses, .count_arg = m->count_arg,
						   .count_map = m->count_map, .count_classes = m->count_classes };
	return 0;
}

/* --- the image ---------------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Give what is in the image its offset; returns the image's size. */
static uint64_t place_in_image(struct target_place *t, struct abi_prog *progs)
{
	uint64_t at = sizeof(struct abi_image) + t->unit->nmaps * sizeof(struct abi_map) +
		      t->nprogs * sizeof(struct abi_prog) + t->nfires * sizeof(struct abi_fire);

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

/* As struct abi_image has it. */
static uint16_t map_number(const struct target_place *t, uint32_t map)
{
	return t->layout.maps[map].kind == ABI_MAP_NONE ? 0 : (uint16_t)(map + 1);
}

static void fill_image(const struct target_place *t, const struct abi_prog *progs, uint8_t *image)
{
	const struct layout *l = &t->layout;
	uint8_t *at = image + sizeof(struct abi_image);

	*(struct abi_image *)image = (struct abi_image){
		.magic = ABI_SEGMENT_MAGIC, .version = ABI_VERSION, .size = t->image_size,
		.data_size = l->data_size, .nmaps = t->unit->nmaps, .nprogs = (uint32_t)t->nprogs,
		.nfires = (uint32_t)t->nfires, .nlanes = l->nlanes, .lanes_off = l->lanes_off,
		.lane_size = l->lane_size, .flags = t->flags,
		.ranges = map_number(t, EBPF_MAP_RANGES), .unwind = map_number(t, EBPF_MAP_UNWIND),
	};
	if (getrandom(&((struct abi_image *)image)->id, sizeof(uint64_t), GRND_NONBLOCK) < 0)
		((struct abi_image *)image)->id = (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)t->data;
	memcpy(at, l->maps, t->unit->nmaps * sizeof(*l->maps));
	at += t->unit->nmaps * sizeof(*l->maps);
	if (t->nprogs)
		memcpy(at, progs, t->nprogs * sizeof(*progs));
	at += t->nprogs * sizeof(*progs);
	if (t->nfires)
		memcpy(at, t->fires, t->nfires * sizeof(*t->fires));
	for (size_t i = 0; i < t->nprogs; i++) {
		const struct ebpf_prog *p = t->progs[i].prog;
		struct bpf_insn *insns = (struct bpf_insn *)(image + progs[i].off);

		memcpy(insns, p->insns, p->ninsns * sizeof(*insns));
		for (uint32_t r = 0; r < p->nrelocs; r++)
			insns[p->relocs[r].insn].imm = (int32_t)p->relocs[r].map;
	}
	for (uint32_t i = 0; i < t->unit->nmaps; i++) {
		const struct abi_map *m = &l->maps[i];

		if (i == EBPF_MAP_PROBES)
			memcpy(image + m->off, t->probes, m->size);
		else if (m->kind == ABI_MAP_IMAGE)
			memcpy(image + m->off, t->unit->maps[i].init, m->value_size);
	}
}

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x8U	/* Linux 6.3 */
#endif

/* Never to be executed, without which vm.memfd_noexec=2 permits none. */
static int new_file(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

static int make_image(struct target_place *t, const struct abi_prog *progs)
{
	void *image;
	int err = 0;

	t->image_fd = new_file("dtap-image");
	if (t->image_fd < 0 || ftruncate(t->image_fd, (off_t)t->image_size))
		return -errno;
	image = mmap(NULL, t->image_size, PROT_READ | PROT_WRITE, MAP_SHARED, t->image_fd, 0);
	if (image == MAP_FAILED)
		return -errno;
	fill_image(t, progs, image);
	munmap(image, t->image_size);
	if (fcntl(t->image_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	image = mmap(NULL, t->image_size, PROT_READ, MAP_SHARED, t->image_fd, 0);
	if (image == MAP_FAILED)
		err = -errno;
	else
		t->image = image;
	return err;
}

/* Why @prog cannot be loaded, with the clause's line where that is known. */
static void say_refused(const struct ebpf_prog *prog, const struct vm_error *why, struct strbuf *err)
{
	const struct ebpf_line *line = ebpf_line_find(prog, why->insn);

	strbuf_puts(err, "the target place refuses the program");
	if (line && line->pos.src && line->pos.line)
		strbuf_printf(err, " for clause %u (%s:%u:%u)", line->clause + 1, line->pos.src->name, line->pos.line,
			      line->pos.col);
	strbuf_printf(err, ": %s (instruction %u)", why->text, why->insn);
}

/* All programs, also those for the target: what its engine would refuse is to be said here. */
static int load_all(struct target_place *t, struct strbuf *err)
{
	struct vm_error why;

	for (size_t i = 0; i < t->nprogs; i++) {
		int e = shm_load(&t->shm, (uint32_t)i, SHM_BUDGET_TRACER, &t->progs[i].vm, &why);

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

static int ready(struct place *place, struct strbuf *err)
{
	struct target_place *t = of(place);
	struct abi_prog *progs = calloc(t->nprogs + 1, sizeof(*progs));
	const char *why = "out of memory";
	int e = -ENOMEM;

	if (progs) {
		t->image_size = place_in_image(t, progs);
		e = make_image(t, progs);
		why = strerror(-e);
		free(progs);
	}
	if (!e)
		e = shm_open_segment(t->image, t->image_size, t->data, t->layout.data_size, &t->shm, &why);
	if (!e)
		e = shm_run_init(&t->run, &t->shm, 0, (uint32_t)getpid(), process_start());
	if (e) {
		strbuf_printf(err, "cannot make the memory to be shared with the target: %s", why);
		return e;
	}
	t->shm.punch_fd = t->data_fd;
	clock_start(&t->clock, &data_of(t)->clock);
	return load_all(t, err);
}

/* --- while it runs ------------------------------------------------------------------------------------ */

/* The gate is shut: wait until nobody is behind it, a tenth of a second at most. */
static void disarm(struct place *place)
{
	struct target_place *t = of(place);
	const struct timespec wait = { .tv_nsec = 100000 };

	for (int k = 0; t->image && k < 1000 && shm_busy(&t->shm); k++)
		nanosleep(&wait, NULL);
}

static int run(struct place *place, int prog, uint32_t probe, const uint64_t args[10])
{
	struct target_place *t = of(place);
	uint64_t ctx[11] = { probe };

	/* Without executable memory it is interpreted. */
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
	return ((const struct target_place *)place)->woken_fd;
}

/* Wakes taken notice of at a time. */
enum { WAKES = 64 };

/* What targets lost in ways that programs do not know of. */
static void count_losses(struct target_place *t, uint64_t rings)
{
	struct abi_data *d = data_of(t);
	uint64_t failed = __atomic_load_n(&d->failed_runs, __ATOMIC_RELAXED);
	uint64_t unserved = __atomic_load_n(&d->no_lane, __ATOMIC_RELAXED);

	if (rings)
		__atomic_fetch_add(&d->control.drops[ABI_DROP_RECORD], rings, __ATOMIC_RELAXED);
	if (failed != t->failed || unserved != t->unserved)
		__atomic_fetch_add(&d->control.drops[ABI_DROP_BUSY], failed - t->failed + unserved - t->unserved,
				   __ATOMIC_RELAXED);
	t->failed = failed;
	t->unserved = unserved;
}

static int drain(struct place *place, int (*record)(void *ctx, const void *rec, size_t size), void *ctx)
{
	struct target_place *t = of(place);
	uint64_t lost = 0;
	char news[8];
	int n;

	/* What is left of a flood of them does no harm. */
	for (int k = 0; k < WAKES && recv(t->woken_fd, news, sizeof(news), MSG_DONTWAIT) > 0; k++)
		;
	n = t->image ? shm_drain(&t->shm, record, ctx, &lost) : 0;

	count_losses(t, lost);
	clock_keep(&t->clock);
	return n;
}

struct each {
	void (*fn)(void *ctx, const void *key, const void *value, unsigned int ncpus);
	void *ctx;
};

static void each_element(void *ctx, const void *key, const void *value)
{
	const struct each *e = ctx;

	e->fn(e->ctx, key, value, 1);
}

static int map_each(struct place *place, uint32_t map,
		    void (*each)(void *ctx, const void *key, const void *value, unsigned int ncpus), void *ctx)
{
	struct target_place *t = of(place);
	struct each e = { each, ctx };

	if (t->image)
		shm_map_each(&t->shm, map, each_element, &e);
	return 0;
}

static int map_set(struct place *place, uint32_t map, const void *key, const void *value)
{
	return shm_map_set(&of(place)->shm, map, key, value);
}

static void *map_memory(struct place *place, uint32_t map)
{
	const struct shm_map *m = &of(place)->shm.maps[map];

	return m->kind == ABI_MAP_ARRAY && m->max_entries == 1 ? of(place)->data + m->off : NULL;
}

static int map_delete(struct place *place, uint32_t map, const void *key)
{
	return shm_map_delete(&of(place)->shm, map, key);
}

/* --- the place ---------------------------------------------------------------------------------------- */

static const struct place_ops ops = {
	.free = free_place,
	.control = control,
	.set_probe = set_probe,
	.load = load,
	.arm_marker = arm_marker,
	.ready = ready,
	.disarm = disarm,
	.run = run,
	.out_fd = out_fd,
	.drain = drain,
	.map_each = map_each,
	.map_memory = map_memory,
	.map_set = map_set,
	.map_delete = map_delete,
};

static int make_data(struct target_place *t)
{
	int ends[2];
	void *data;

	t->data_fd = new_file("dtap-data");
	if (t->data_fd < 0 || ftruncate(t->data_fd, (off_t)t->layout.data_size) ||
	    fcntl(t->data_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	data = mmap(NULL, t->layout.data_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, t->data_fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	t->data = data;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
		return -errno;
	t->wake_fd = ends[0];
	t->woken_fd = ends[1];
	return 0;
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
	t->flags = (wait ? ABI_SEGMENT_WAIT : 0) |
		   (unit->maps[EBPF_MAP_STACKS].type != BPF_MAP_TYPE_UNSPEC ? ABI_SEGMENT_STACKS : 0) |
		   (unit->maps[EBPF_MAP_PYTHONS].type != BPF_MAP_TYPE_UNSPEC ? ABI_SEGMENT_PYTHON : 0);
	t->image_fd = t->data_fd = t->wake_fd = t->woken_fd = -1;
	t->probes = calloc(unit->maps[EBPF_MAP_PROBES].max_entries, sizeof(*t->probes));
	if (t->probes)
		e = layout_make(unit, processes, &t->layout);
	if (!e)
		e = make_data(t);
	if (e) {
		strbuf_printf(err, "cannot make the memory to be shared with the target: %s", e == -E2BIG ?
			      "it would be too large; lower aggsize, dynvarsize or bufsize" : strerror(-e));
		free_place(&t->place);
		return e;
	}
	*ret = &t->place;
	return 0;
}

struct target_place_fds target_place_fds(const struct place *p)
{
	const struct target_place *t = (const struct target_place *)p;

	return (struct target_place_fds){ t->image_fd, t->data_fd, t->wake_fd };
}
