/*
 * run FILE.vm...: eBPF in text through each engine (the interpreter, compiled code where there is a compiler, the
 * kernel where it lets us), which must all give what is written down, and the same memory.
 *
 * A file is a list of cases:
 *
 *	-- asm		a program (asm.h); its context is 12 words, map 0 has 64 bytes, map 1 is to be walked: it has 10, 20
 *			and 30 under 1, 2 and 3; compiled code knows where the element under 3 is, and that of map 0
 *	-- args A B...	the context's first words; they follow each other with results:
 *	-- result R	what r0 must be then, or "fault" or "time"
 *	-- refused TEXT	instead: the check says something with TEXT in it
 *	-- user		the kernel is not asked: it wants a proof where we compare, or is older than the instruction
 *
 * Helper 1 finds an element; 5 (the kernel's clock) gives 42 here, so its result is not to be returned; 1000 is
 * fill(mem, size, byte), 1001 sum(a, b, c, d, e).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "abi/segment.h"
#include "asm.h"
#include "place/func_info.h"
#include "vm/vm.h"

enum { MAX_INSNS = 4096, WRAP = 5, MEM = 64, WORDS = 12 };

struct test {
	const char *path;
	unsigned int line, cases, compiled, kernel_runs;
	int failures;
	char asm_text[65536];
	struct bpf_insn insns[MAX_INSNS];
	int n;
	bool user;
	uint64_t ctx[WORDS];
	struct vm_prog *prog;
	uint8_t mem[MEM] __attribute__((aligned(8)));
	int kernel;		/* 0: not loaded yet; -1: it cannot be */
	int kernel_mem, kernel_elems;
};

enum { ELEMS = 5 };

/* Map 1; a key of 0 is none. */
static const struct elem { struct abi_elem head; uint64_t key, value; } all_elems[ELEMS] = {
	{ .value = 7 },
	{ { .state = ABI_ELEM_LIVE }, 1, 10 },
	{ .value = 7 },
	{ { .state = ABI_ELEM_LIVE }, 3, 30 },
	{ { .state = ABI_ELEM_LIVE }, 2, 20 },
};
static struct elem elems[ELEMS];

/* What vm_thread.values lead to: map 0, and the element of map 1 that was found last. */
enum { AT_MEM, AT_LAST };
static struct { uint64_t other; struct elem *found; } last = { 0, &elems[3] };

static void complain(struct test *t, const char *what, const char *text)
{
	fprintf(stderr, "%s:%u: %s %s\n", t->path, t->line, what, text);
	t->failures++;
}

static uint64_t clock42(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, struct vm_thread *t)
{
	(void)a, (void)b, (void)c, (void)d, (void)e, (void)t;
	return 42;
}

static uint64_t fill(uint64_t mem, uint64_t size, uint64_t byte, uint64_t d, uint64_t e, struct vm_thread *t)
{
	(void)d, (void)e, (void)t;
	memset((void *)(uintptr_t)mem, (int)byte, size);
	return size;
}

static uint64_t sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, struct vm_thread *t)
{
	(void)t;
	return a + b + c + d + e;
}

/* map_delete_elem */
static uint64_t delete(uint64_t map, uint64_t key, uint64_t c, uint64_t d, uint64_t e, struct vm_thread *t)
{
	(void)c, (void)d, (void)e, (void)t;
	for (int k = 0; (void *)(uintptr_t)map == elems && k < ELEMS; k++) {
		if (*(const uint64_t *)(uintptr_t)key == elems[k].key && elems[k].key) {
			elems[k].key = 0;
			elems[k].head.state = ABI_ELEM_FREE;
			return 0;
		}
	}
	return (uint64_t)-ENOENT;
}

/* map_lookup_elem */
static uint64_t find(uint64_t map, uint64_t key, uint64_t c, uint64_t d, uint64_t e, struct vm_thread *t)
{
	(void)c, (void)d, (void)e;
	if ((void *)(uintptr_t)map != elems)
		return t->values[AT_MEM];
	for (int k = 0; k < ELEMS; k++)
		if (*(const uint64_t *)(uintptr_t)key == elems[k].key && elems[k].key)
			return (uint64_t)(uintptr_t)&elems[k].value;
	return 0;
}

static bool next(void *handle, struct vm_thread *t, uint64_t from, struct vm_elem *ret)
{
	(void)t;
	for (; handle == elems && from < ELEMS; from++) {
		if (!elems[from].key)
			continue;
		*ret = (struct vm_elem){ from, (uint64_t)(uintptr_t)&elems[from].key, (uint64_t)(uintptr_t)&elems[from].value };
		return true;
	}
	return false;
}

static const struct vm_helper helpers[] = {
	{ 1, find, VM_RET_ELEM, { VM_ARG_MAP, VM_ARG_KEY } },
	{ 3, delete, VM_RET_VALUE, { VM_ARG_MAP, VM_ARG_KEY } },
	{ 5, clock42, VM_RET_VALUE, { VM_ARG_NONE } },
	{ 1000, fill, VM_RET_VALUE, { VM_ARG_WRITE, VM_ARG_SIZE, VM_ARG_ANY } },
	{ 1001, sum, VM_RET_VALUE, { VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY, VM_ARG_ANY } },
};

/* --- the kernel -------------------------------------------------------------------------------------- */

/*
 * BPF_PROG_TEST_RUN gives 32 bits of r0 only, so the program is called from one that puts all of r0 behind the
 * case's memory in the map.
 */
static void kernel_load(struct test *t)
{
	struct bpf_insn insns[MAX_INSNS + WRAP + 3];
	struct func_info info = { .btf_fd = -1 };
	LIBBPF_OPTS(bpf_map_create_opts, map_opts);
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int n = 0;

	t->kernel = -1;
	t->kernel_mem = bpf_map_create(BPF_MAP_TYPE_ARRAY, "mem", 4, MEM + 8, 1, &map_opts);
	t->kernel_elems = bpf_map_create(BPF_MAP_TYPE_HASH, "elems", 8, 8, ELEMS, &map_opts);
	if (t->kernel_mem < 0 || t->kernel_elems < 0)
		return;
	insns[n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = WRAP };
	insns[n++] = (struct bpf_insn){ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1,
					.src_reg = BPF_PSEUDO_MAP_VALUE };
	insns[n++] = (struct bpf_insn){ .imm = MEM };
	insns[n++] = (struct bpf_insn){ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 1, .src_reg = 0 };
	insns[n++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K };
	insns[n++] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	memcpy(insns + n, t->insns, (size_t)t->n * sizeof(*insns));
	n += t->n;
	for (int k = 0; k < n; k++) {
		if (insns[k].code == (BPF_LD | BPF_IMM | BPF_DW) && (insns[k].src_reg == BPF_PSEUDO_MAP_FD ||
								     insns[k].src_reg == BPF_PSEUDO_MAP_VALUE))
			insns[k].imm = insns[k].imm == 1 ? t->kernel_elems : t->kernel_mem;
	}
	if (!func_info_make(insns, (uint32_t)n, NULL, 0, &info) && info.btf_fd >= 0) {
		opts.prog_btf_fd = (uint32_t)info.btf_fd;
		opts.func_info = info.v;
		opts.func_info_cnt = info.n;
		opts.func_info_rec_size = sizeof(*info.v);
	}
	t->kernel = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "vm", "GPL", insns, (size_t)n, &opts);
	if (t->kernel < 0)
		complain(t, "the kernel refuses it:", strerror(errno));
	func_info_fini(&info);
}

static void kernel_run(struct test *t, uint64_t want, const uint8_t *mem)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = t->ctx, .ctx_size_in = sizeof(t->ctx));
	uint8_t got[MEM + 8] = { 0 };
	uint32_t key = 0;
	uint64_t ret;

	if (!t->kernel)
		kernel_load(t);
	if (t->kernel < 0 || bpf_map_update_elem(t->kernel_mem, &key, got, 0))
		return;
	for (int k = 0; k < ELEMS; k++) {
		if (all_elems[k].key && bpf_map_update_elem(t->kernel_elems, &all_elems[k].key, &all_elems[k].value, 0))
			return;
	}
	if (bpf_prog_test_run_opts(t->kernel, &opts) || bpf_map_lookup_elem(t->kernel_mem, &key, got)) {
		complain(t, "the kernel does not run it:", strerror(errno));
		return;
	}
	memcpy(&ret, got + MEM, sizeof(ret));
	if (ret != want || memcmp(mem, got, MEM))
		complain(t, "kernel", "gives another result or memory");
	t->kernel_runs++;
}

/* --- cases ------------------------------------------------------------------------------------------- */

static void outcome(char *text, size_t size, int err, uint64_t ret)
{
	if (err)
		snprintf(text, size, "%s", err == -EFAULT ? "fault" : err == -ETIME ? "time" : strerror(-err));
	else
		snprintf(text, size, "0x%llx", (unsigned long long)ret);
}

static void expect(struct test *t, const char *engine, int err, uint64_t ret, const char *want)
{
	char got[64], text[128];
	bool same;

	outcome(got, sizeof(got), err, ret);
	if (err || (*want != '-' && (*want < '0' || *want > '9')))
		same = !strcmp(got, want);
	else
		same = ret == (*want == '-' ? (uint64_t)strtoll(want, NULL, 0) : strtoull(want, NULL, 0));
	snprintf(text, sizeof(text), "gives %s, not %s", got, want);
	if (!same)
		complain(t, engine, text);
}

static void result(struct test *t, const char *want)
{
	const uint64_t values[VM_VALUES] = { [AT_MEM] = (uint64_t)(uintptr_t)t->mem, [AT_LAST] = (uint64_t)(uintptr_t)&last };
	struct vm_thread thread = { .budget = 0 };
	uint32_t fault;
	uint8_t first[MEM];
	uint64_t ret = 0;
	int err;

	if (!t->prog)
		return;
	t->cases++;
	memset(t->mem, 0, sizeof(t->mem));
	memcpy(elems, all_elems, sizeof(elems));
	memcpy(thread.values, values, sizeof(values));
	err = vm_interpret(t->prog, &thread, t->ctx, &ret);
	expect(t, "interpreter", err, ret, want);
	memcpy(first, t->mem, MEM);
	fault = thread.fault_insn;
	memset(t->mem, 0, sizeof(t->mem));
	memset(&thread, 0, sizeof(thread));
	memcpy(thread.values, values, sizeof(values));
	memcpy(elems, all_elems, sizeof(elems));
	expect(t, "vm_run", vm_run(t->prog, &thread, t->ctx, &ret), ret, want);
	if (err && fault != thread.fault_insn)
		complain(t, "vm_run", "fails at another instruction than the interpreter");
	if (memcmp(first, t->mem, MEM))
		complain(t, "vm_run", "leaves other memory than the interpreter");
	if (!t->user && !err)
		kernel_run(t, ret, first);
}

static void finish_program(struct test *t)
{
	if (t->kernel > 0)
		close(t->kernel);
	if (t->kernel_mem > 0)
		close(t->kernel_mem);
	if (t->kernel_elems > 0)
		close(t->kernel_elems);
	t->kernel = t->kernel_mem = t->kernel_elems = 0;
	vm_free(t->prog);
	t->prog = NULL;
	t->user = getuid() != 0;
	*t->asm_text = '\0';
}

static void load(struct test *t, const char *refused)
{
	struct vm_map map = { .handle = t->mem, .base = t->mem, .size = MEM, .key_size = 4, .value_size = MEM,
			      .quick = VM_QUICK_FIXED, .word = AT_MEM };
	static struct vm_map maps[2];
	struct vm_error why = { 0 };
	char err[200];

	maps[0] = map;
	maps[1] = (struct vm_map){ .handle = elems, .base = elems, .size = sizeof(elems), .key_size = 8, .value_size = 8,
				   .walked = true, .quick = VM_QUICK_LAST, .word = AT_LAST, .off = 8 };
	t->n = asm_read(t->asm_text, t->insns, MAX_INSNS, err);
	if (t->n < 0) {
		complain(t, "", err);
		return;
	}
	if (!vm_load(&(struct vm_spec){ .insns = t->insns, .ninsns = (uint32_t)t->n, .maps = maps, .nmaps = 2,
					.helpers = helpers, .nhelpers = sizeof(helpers) / sizeof(*helpers),
					.ctx_size = sizeof(t->ctx), .next = next }, &t->prog, &why)) {
		if (refused)
			complain(t, "not refused:", refused);
		else
			t->compiled += !vm_compile(t->prog);
	} else if (!refused || !strstr(why.text, refused)) {
		complain(t, "refused:", why.text);
	} else {
		t->cases++;
	}
}

static void args(struct test *t, char *s)
{
	int k = 0;

	memset(t->ctx, 0, sizeof(t->ctx));
	for (char *word = strtok(s, " "); word && k < WORDS; word = strtok(NULL, " "))
		t->ctx[k++] = *word == '-' ? (uint64_t)strtoll(word, NULL, 0) : strtoull(word, NULL, 0);
}

static void run_line(struct test *t, char *s)
{
	s[strcspn(s, "\n")] = '\0';
	if (strncmp(s, "-- ", 3)) {
		size_t n = strlen(t->asm_text);

		if (*s != '#')
			snprintf(t->asm_text + n, sizeof(t->asm_text) - n, "%s\n", s);
	} else if (!strcmp(s, "-- asm")) {
		finish_program(t);
		memset(t->ctx, 0, sizeof(t->ctx));
	} else if (!strcmp(s, "-- user")) {
		t->user = true;
	} else if (!strncmp(s, "-- args ", 8)) {
		args(t, s + 8);
	} else if (!strncmp(s, "-- refused ", 11)) {
		load(t, s + 11);
	} else if (!strncmp(s, "-- result ", 10)) {
		if (!t->prog)
			load(t, NULL);
		result(t, s + 10);
	} else {
		complain(t, "what is", s);
	}
}

int main(int argc, char **argv)
{
	static struct test t;
	char s[512];

	for (int k = 1; k < argc; k++) {
		FILE *f = fopen(argv[k], "r");

		if (!f)
			return 1;
		t.path = argv[k];
		for (t.line = 1; fgets(s, sizeof(s), f); t.line++)
			run_line(&t, s);
		finish_program(&t);
		fclose(f);
	}
	printf("%u cases, %u programs compiled, %u cases also in the kernel\n", t.cases, t.compiled, t.kernel_runs);
	return t.failures || !t.cases;
}
