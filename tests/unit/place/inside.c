#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strbuf.h"

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

void inside_make(struct inside *in, const char *script, const struct ebpf_sizes *sizes, bool compile)
{
	struct ebpf_env env = { .ctx = EBPF_CTX_TARGET, .user_space = true };
	struct place_marker marker = { .uses = 7 };
	struct strbuf err = { 0 };
	struct target_place_fds fds;
	struct vm_error why;
	struct ebpf_prog *p;
	const char *text;
	int prog;

	memset(in, 0, sizeof(*in));
	compile_text(&in->c, "test", script, strlen(script));
	if (!in->c.prog)
		fail("the script does not compile");
	in->unit = ebpf_unit_new(in->c.prog, sizes, &text);
	p = in->unit ? ebpf_compile(in->unit, &env, in->c.prog->clauses, in->c.prog->nclauses, NULL, 0, &text) : NULL;
	if (!p)
		fail(text);
	if (target_place_new(in->unit, false, 0, &in->place, &err))
		fail(strbuf_str(&err));
	prog = in->place->ops->load(in->place, p, false, &err, NULL);
	if (prog < 0 || in->place->ops->arm_marker(in->place, prog, &marker, &err) || in->place->ops->ready(in->place, &err))
		fail(strbuf_str(&err));
	fds = target_place_fds(in->place);
	in->image = map_fd(fds.image, PROT_READ, &in->image_size);
	in->data = map_fd(fds.data, PROT_READ | PROT_WRITE, &in->data_size);
	if (shm_open_segment(in->image, in->image_size, in->data, in->data_size, &in->shm, &text))
		fail(text);
	if (shm_load(&in->shm, 0, SHM_BUDGET_TARGET, &in->prog, &why))
		fail(why.text);
	if (compile)
		vm_compile(in->prog);
	if (shm_run_init(&in->run, &in->shm, -1, (uint32_t)getpid(), 1))
		fail("no lane");
	place_control(in->place)->state = ABI_STATE_ACTIVE;
	strbuf_fini(&err);
}

void inside_free(struct inside *in)
{
	shm_run_fini(&in->run);
	vm_free(in->prog);
	shm_fini(&in->shm);
	munmap(in->image, in->image_size);
	munmap(in->data, in->data_size);
	place_free(in->place);
	compiled_free(&in->c);
}

void inside_fire(struct inside *in, const char *file, const char *func, int line)
{
	uint64_t ctx[11] = { 0, (uint64_t)(uintptr_t)file, (uint64_t)(uintptr_t)func, (uint64_t)line };

	in->run.strings = ctx + 1;
	in->run.nstrings = 2;
	shm_run_prog(&in->run, in->prog, ctx);
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
