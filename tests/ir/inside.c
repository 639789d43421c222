#include "inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "place/target.h"
#include "target/peer.h"
#include "vm/shm.h"

enum { LANES = 20 };

struct inside {
	struct place *place;
	void *image, *data;
	uint64_t image_size, data_size;
	struct shm shm;			/* the target's mapping */
	bool has_shm, has_run;
	struct shm_run run;
	struct vm_prog *prog;
};

static void *map_fd(int fd, int prot, uint64_t *size)
{
	off_t end = lseek(fd, 0, SEEK_END);
	void *at = mmap(NULL, (size_t)end, prot, MAP_SHARED | MAP_NORESERVE, fd, 0);

	*size = (uint64_t)end;
	return at == MAP_FAILED ? NULL : at;
}

/* The place with the one program, on both sides. */
static bool load(struct inside *in, const struct inside_code *code, bool compile, struct strbuf *err)
{
	struct ebpf_env env = { .ctx = EBPF_CTX_TARGET, .user_space = true, .error_probe = 1 };
	struct place_marker marker = { .uses = 0x3ff };
	struct target_place_fds fds;
	struct domain own;
	struct vm_error why;
	const char *text = NULL;
	struct ebpf_prog *p = ebpf_compile(code->unit, &env, code->clauses, code->nclauses, code->errors, code->nerrors,
					   &text);
	const struct place_ops *ops;
	int prog;

	if (!p) {
		strbuf_puts(err, text);
		return false;
	}
	if (target_place_new(code->unit, false, LANES, &in->place, err))
		return false;
	ops = in->place->ops;
	for (unsigned int k = 0; k < code->nprobes; k++) {
		if (ops->set_probe(in->place, k, &code->probes[k]))
			return false;
	}
	prog = ops->load(in->place, p, false, err, NULL);
	if (prog < 0 || ops->arm_marker(in->place, prog, &marker, err) || ops->ready(in->place, err) ||
	    domain_of(getpid(), &own) || target_place_segment(in->place, &own, false, &fds, err))
		return false;
	in->image = map_fd(fds.image, PROT_READ, &in->image_size);
	in->data = map_fd(fds.data, PROT_READ | PROT_WRITE, &in->data_size);
	if (!in->image || !in->data ||
	    shm_open_segment(in->image, in->image_size, in->data, in->data_size, &in->shm, &text)) {
		strbuf_puts(err, text ? text : "cannot map the segment");
		return false;
	}
	in->has_shm = true;
	if (shm_load(&in->shm, 0, SHM_BUDGET_TARGET, &in->prog, &why)) {
		strbuf_printf(err, "instruction %u: %s", why.insn, why.text);
		return false;
	}
	if (compile && vm_compile(in->prog)) {
		strbuf_puts(err, "there is no compiler");
		return false;
	}
	if (shm_run_init(&in->run, &in->shm, -1, (uint32_t)getpid(), 1)) {
		strbuf_puts(err, "no lane");
		return false;
	}
	in->has_run = true;
	shm_set_tid(&in->run, (uint32_t)gettid());
	ops->set_state(in->place, ABI_STATE_ACTIVE);
	return true;
}

struct inside *inside_open(const struct inside_code *code, bool compile, char **err)
{
	struct inside *in = calloc(1, sizeof(*in));
	struct strbuf why = { 0 };

	if (!in || !load(in, code, compile, &why)) {
		*err = strdup(strbuf_str(&why));
		inside_close(in);
		in = NULL;
	}
	strbuf_fini(&why);
	return in;
}

void inside_close(struct inside *in)
{
	if (!in)
		return;
	if (in->has_run)
		shm_run_fini(&in->run);
	vm_free(in->prog);
	if (in->has_shm)
		shm_fini(&in->shm);
	if (in->image)
		munmap(in->image, in->image_size);
	if (in->data)
		munmap(in->data, in->data_size);
	place_free(in->place);
	free(in);
}

static bool run_in(struct inside *in, struct shm_run *run, const uint64_t ctx[11])
{
	uint64_t copy[11];

	memcpy(copy, ctx, sizeof(copy));
	return shm_run_prog(run, in->prog, copy);
}

bool inside_run(struct inside *in, const uint64_t ctx[11])
{
	return run_in(in, &in->run, ctx);
}

bool inside_run_often(struct inside *in, const uint64_t ctx[11], int64_t times)
{
	struct shm_run run;
	bool ok = true;

	if (shm_run_init(&run, &in->shm, -1, (uint32_t)getpid(), 1))
		return false;
	shm_set_tid(&run, (uint32_t)gettid());
	for (int64_t k = 0; k < times; k++)
		ok = run_in(in, &run, ctx) && ok;
	shm_run_fini(&run);
	return ok;
}

struct place *inside_place(struct inside *in)
{
	return in->place;
}
