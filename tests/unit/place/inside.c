#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "target/peer.h"

static void *map_fd(int fd, int prot, uint64_t *size)
{
	void *at;

	*size = (uint64_t)lseek(fd, 0, SEEK_END);
	at = mmap(NULL, *size, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at == MAP_FAILED)
		abort();
	return at;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	abort();
}

/* One program for the marker, of @n of the script's clauses. */
static void load(struct inside *in, struct ir_clause **clauses, uint32_t n)
{
	struct ebpf_env env = { .ctx = EBPF_CTX_TARGET, .user_space = true };
	struct place_marker marker = { .uses = 7 };
	struct strbuf err = { 0 };
	const char *text;
	struct ebpf_prog *p = ebpf_compile(in->unit, &env, clauses, n, NULL, 0, &text);
	int prog;

	if (!p)
		fail(text);
	prog = in->place->ops->load(in->place, p, false, &err, NULL);
	if (prog < 0 || in->place->ops->arm_marker(in->place, prog, &marker, &err))
		fail(strbuf_str(&err));
}

/* The place, with a program for each clause if @each, and few lanes then. */
static void make_place(struct inside *in, const struct ebpf_sizes *sizes, bool each)
{
	const struct ir_prog *prog = in->c.prog;
	struct strbuf err = { 0 };
	const char *text;

	in->unit = ebpf_unit_new(prog, sizes, &text);
	if (!in->unit)
		fail(text);
	if (target_place_new(in->unit, false, each, &in->place, &err))
		fail(strbuf_str(&err));
	in->nprogs = each ? prog->nclauses : 1;
	if (in->nprogs > INSIDE_PROGS)
		fail("too many clauses");
	for (uint32_t k = 0; k < in->nprogs; k++)
		load(in, prog->clauses + k, each ? 1 : prog->nclauses);
	if (in->place->ops->ready(in->place, &err))
		fail(strbuf_str(&err));
}

static void make(struct inside *in, const char *script, const struct ebpf_sizes *sizes, bool compile, bool each)
{
	struct strbuf err = { 0 };
	struct target_place_fds fds;
	struct vm_error why;
	struct domain own;
	const char *text;

	memset(in, 0, sizeof(*in));
	compile_text(&in->c, "test", script, strlen(script));
	if (!in->c.prog)
		fail("the script does not compile");
	make_place(in, sizes, each);
	if (domain_of(getpid(), &own) || target_place_segment(in->place, &own, false, &fds, &err))
		fail(strbuf_str(&err));
	in->image = map_fd(fds.image, PROT_READ, &in->image_size);
	in->data = map_fd(fds.data, PROT_READ | PROT_WRITE, &in->data_size);
	if (shm_open_segment(in->image, in->image_size, in->data, in->data_size, &in->shm, &text))
		fail(text);
	for (uint32_t k = 0; k < in->nprogs; k++) {
		if (shm_load(&in->shm, k, SHM_BUDGET_TARGET, &in->progs[k], &why))
			fail(why.text);
		if (compile)
			vm_compile(in->progs[k]);
	}
	if (shm_run_init(&in->run, &in->shm, -1, (uint32_t)getpid(), 1))
		fail("no lane");
	in->place->ops->set_state(in->place, ABI_STATE_ACTIVE);
	strbuf_fini(&err);
}

void inside_make(struct inside *in, const char *script, const struct ebpf_sizes *sizes, bool compile)
{
	make(in, script, sizes, compile, false);
}

void inside_make_each(struct inside *in, const char *script, const struct ebpf_sizes *sizes, bool compile)
{
	make(in, script, sizes, compile, true);
}

void inside_free(struct inside *in)
{
	shm_run_fini(&in->run);
	for (uint32_t k = 0; k < in->nprogs; k++)
		vm_free(in->progs[k]);
	shm_fini(&in->shm);
	munmap(in->image, in->image_size);
	munmap(in->data, in->data_size);
	place_free(in->place);
	compiled_free(&in->c);
}

void inside_fire_one(struct inside *in, unsigned int number, const char *file, const char *func, int line)
{
	uint64_t ctx[11] = { 0, (uint64_t)(uintptr_t)file, (uint64_t)(uintptr_t)func, (uint64_t)line };

	in->run.strings = ctx + 1;
	in->run.nstrings = 2;
	shm_run_prog(&in->run, in->progs[number], ctx);
}

void inside_fire(struct inside *in, const char *file, const char *func, int line)
{
	inside_fire_one(in, 0, file, func, line);
}

struct search {
	const char *key;
	uint64_t value;
	unsigned int times;
};

static void look(void *ctx, const void *key, const void *value, unsigned int ncpus)
{
	struct search *s = ctx;

	(void)ncpus;
	if (!strcmp(key, s->key)) {
		s->value += *(const uint64_t *)value;
		s->times++;
	}
}

uint64_t inside_drops(const struct inside *in, enum abi_drop kind)
{
	struct place_told told;

	in->place->ops->told(in->place, &told);
	return told.drops[kind];
}

uint64_t inside_count(const struct inside *in, unsigned int agg, const char *key, unsigned int *times)
{
	struct search s = { .key = key };
	uint32_t first, n = ebpf_agg_maps(in->unit, in->c.prog->aggs[agg], &first);

	for (uint32_t k = 0; k < n; k++)
		in->place->ops->map_each(in->place, first + k, look, &s);
	if (times)
		*times = s.times;
	return s.value;
}
