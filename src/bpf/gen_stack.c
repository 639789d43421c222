/*
 * Stacks, and addresses that are shown by name: each becomes a number, which fits in fields and keys like any integer.
 *
 * The number is a hash of the addresses, for user stacks also of the process.  A program that meets a new one sends it
 * to the tracer in its own record (ABI_REC_STACK) and wakes it, so that it can look for names while the process lives;
 * EBPF_MAP_STACKS has those that were sent.
 *
 * The record is built in the work area, addresses in place: header | number | flags | addresses ...
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "bpf/rt/stack.h"

/* Frames of the tracing itself that lie on top of a kernel stack at a tracepoint; the tracer leaves them out. */
enum { OWN_FRAMES = 3 };

_Static_assert((int)STACK_ADDRS == (int)PLAN_STACK_FRAMES, "room for the addresses");
enum { NUMBER = sizeof(struct abi_record), FLAGS = NUMBER + 8, ADDRS = FLAGS + 8 };

/* Is there a stack, and is it that of the thread that the probe is about? */
static bool has_stack(const struct gen *g)
{
	return g->env->ctx != EBPF_CTX_RUN && !g->in_error && !gen_tp_other_task(g);
}

/* R0 = bytes of the stack, which is put at @off of the work area. */
static void walk(struct gen *g, bool user, uint32_t frames, uint32_t off)
{
	struct assembler *as = &g->as;
	uint32_t ok = asm_label(as);

	asm_ld(as, BPF_DW, R1, R10, FRAME_CTX);
	gen_scratch(g, R2, g->priv->work_off + off);
	asm_imm(as, R3, 8 * (int64_t)frames);
	asm_imm(as, R4, user ? BPF_F_USER_STACK : 0);
	asm_helper(as, BPF_FUNC_get_stack);
	asm_ji(as, BPF_JSGE, R0, 0, ok);
	asm_imm(as, R0, 0);
	asm_bind(as, ok);
}

/*
 * The same, at ADDRS, at the start of a function: the program counter, the return address of the function, then the
 * walk's addresses without the first.
 */
static void walk_with_caller(struct gen *g, uint32_t frames)
{
	struct assembler *as = &g->as;
	int addrs = (int)g->priv->work_off + ADDRS;
	uint32_t none = asm_label(as);

	walk(g, true, frames - 1, ADDRS + 8);
	asm_ji(as, BPF_JEQ, R0, 0, none);
	asm_alui(as, BPF_ADD, R0, 8);
	asm_st(as, BPF_DW, R10, FRAME_POS, R0);
	asm_ld(as, BPF_DW, R1, R9, addrs + 8);
	asm_st(as, BPF_DW, R9, addrs, R1);
	asm_ld(as, BPF_DW, R1, R10, FRAME_CTX);
	if (g->kept->links) {
		asm_ld(as, BPF_DW, R1, R1, g->kept->link);
		asm_st(as, BPF_DW, R9, addrs + 8, R1);
	} else {
		asm_ld(as, BPF_DW, R3, R1, g->kept->sp);	/* the return address is there */
		asm_mov(as, R1, R9);
		asm_alui(as, BPF_ADD, R1, addrs + 8);
		asm_imm(as, R2, 8);
		asm_helper(as, BPF_FUNC_probe_read_user);
	}
	asm_ld(as, BPF_DW, R0, R10, FRAME_POS);
	asm_bind(as, none);
}

/* R0 and FRAME_POS = bytes of the stack, which is put in the work area. */
static void read_stack(struct gen *g, bool user, uint32_t frames)
{
	uint32_t done = asm_label(&g->as);

	if (user && has_stack(g) && frames && g->priv->unwinds)
		gen_unwind(g, frames, done);
	if (!has_stack(g) || !frames)
		asm_imm(&g->as, R0, 0);
	else if (user && g->env->skips_caller && frames > 1)
		walk_with_caller(g, frames);
	else
		walk(g, user, frames, ADDRS);
	asm_bind(&g->as, done);
	asm_st(&g->as, BPF_DW, R10, FRAME_POS, R0);
}

/* R0 = R0, mixed by a multiplication with R3 and a shift; R2 is lost. */
static void mix(struct assembler *as)
{
	asm_alu(as, BPF_MUL, R0, R3);
	asm_mov(as, R2, R0);
	asm_alui(as, BPF_RSH, R2, 32);
	asm_alu(as, BPF_XOR, R0, R2);
}

/*
 * FRAME_TMP2 = the hash of the up to @frames addresses.  The process is mixed before the first of them: processes that were
 * forked from one have the same addresses, and neighbouring numbers.
 */
static void hash(struct gen *g, enum ir_stack whose, uint32_t frames)
{
	struct assembler *as = &g->as;
	int base = (int)g->priv->work_off, addrs = base + ADDRS;
	uint32_t done = asm_label(as);

	/* Through memory, so that the verifier does not follow each depth of the stack separately. */
	asm_ld(as, BPF_DW, R0, R10, FRAME_POS);
	asm_st(as, BPF_DW, R9, base, R0);
	asm_ld(as, BPF_DW, R1, R9, base);
	asm_imm(as, R3, (int64_t)0x9e3779b97f4a7c15);
	asm_imm(as, R0, 0);
	if (whose) {
		asm_ld(as, BPF_W, R0, R10, FRAME_TASK + 4);
		asm_alui(as, BPF_ADD, R0, 2);
		if (whose == IR_STACK_INSTRUCTIONS)	/* another stack than the same frames by line */
			asm_alui(as, BPF_OR, R0, 1 << 30);
		mix(as);
	}
	for (uint32_t k = 0; k < frames; k++) {
		asm_ji(as, BPF_JLE, R1, (int32_t)(8 * k), done);
		asm_ld(as, BPF_DW, R2, R9, addrs + 8 * (int)k);
		asm_alu(as, BPF_XOR, R0, R2);
		mix(as);
	}
	asm_bind(as, done);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R0);
}

/* R1 = EBPF_MAP_STACKS, R2 = the number. */
static void map_and_key(struct gen *g)
{
	asm_map(&g->as, R1, EBPF_MAP_STACKS);
	asm_mov(&g->as, R2, R10);
	asm_alui(&g->as, BPF_ADD, R2, FRAME_TMP2);
}

/* Send the stack to the tracer, unless it was sent. */
static void tell(struct gen *g, enum ir_stack whose, uint32_t frames)
{
	struct assembler *as = &g->as;
	int base = (int)g->priv->work_off;
	uint32_t known = asm_label(as), lost = asm_label(as);
	uint32_t flags = (whose ? ABI_STACK_USER : 0) | (whose >= IR_STACK_PYTHON ? ABI_STACK_PYTHON : 0) |
			 (whose == IR_STACK_INSTRUCTIONS ? ABI_STACK_INSTRUCTIONS : 0);

	map_and_key(g);
	asm_helper(as, BPF_FUNC_map_lookup_elem);
	asm_ji(as, BPF_JNE, R0, 0, known);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
	asm_st(as, BPF_DW, R9, base + NUMBER, R1);
	if (whose == IR_STACK_MIXED && has_stack(g)) {	/* how many addresses precede Python's frames */
		gen_scratch(g, R5, (uint32_t)base + offsetof(struct stack_work, addrs));
		asm_ld(as, BPF_DW, R1, R5, 0);
		asm_alui(as, BPF_LSH, R1, 8);
		asm_alui(as, BPF_OR, R1, (int32_t)flags);
		asm_st(as, BPF_W, R9, base + FLAGS, R1);
	} else {
		asm_sti(as, BPF_W, R9, base + FLAGS, (int32_t)flags);
	}
	asm_sti(as, BPF_W, R9, base + FLAGS + 4, (int32_t)frames);
	gen_header(g, R9, base, ABI_REC_STACK);
	asm_ld(as, BPF_DW, R3, R10, FRAME_POS);
	asm_alui(as, BPF_ADD, R3, ADDRS);
	asm_st(as, BPF_W, R9, base + (int)offsetof(struct abi_record, size), R3);
	asm_map(as, R1, EBPF_MAP_OUT);
	gen_scratch(g, R2, (uint32_t)base);
	asm_imm(as, R4, BPF_RB_FORCE_WAKEUP);
	asm_helper(as, BPF_FUNC_ringbuf_output);
	asm_ji(as, BPF_JNE, R0, 0, lost);
	map_and_key(g);
	asm_map_value(as, R3, EBPF_MAP_RODATA, g->priv->zeros_off);
	asm_imm(as, R4, BPF_ANY);
	asm_helper(as, BPF_FUNC_map_update_elem);
	asm_ja(as, known);
	asm_bind(as, lost);
	gen_drop(g, ABI_DROP_RECORD);
	asm_bind(as, known);
}

static bool fits(struct gen *g)
{
	if (g->priv->work_off + ADDRS + 8 * PLAN_STACK_FRAMES > INT16_MAX)
		gen_refuse(g, "a clause has too many values at a time");
	return !g->err;
}

static uint32_t frames_wanted(int64_t frames)
{
	return (uint32_t)(frames > PLAN_STACK_FRAMES - OWN_FRAMES ? PLAN_STACK_FRAMES - OWN_FRAMES : frames);
}

/* How many frames the program asks for. */
static uint32_t frames_of(struct gen *g, const struct ir_insn *i)
{
	return frames_wanted(gen_constant(g, i->args[1]));
}

bool gen_stack_form(const struct plan *plan, const struct ir_insn *i, struct kept_form *ret)
{
	const struct loc *whose, *frames;

	if (i->op != IR_CALL || i->fn != IR_FN_STACK)
		return false;
	whose = &plan->locs[i->args[0]];
	frames = &plan->locs[i->args[1]];
	if (whose->kind != LOC_CONST || frames->kind != LOC_CONST)
		return false;
	*ret = (struct kept_form){ (enum ir_stack)whose->v, frames_wanted(frames->v) };
	return true;
}

/* In vm/, where a helper walks the process's stacks. */
static void stack_here(struct gen *g, const struct ir_insn *i)
{
	static const uint32_t flags[] = {
		[IR_STACK_USER] = ABI_STACK_USER | ABI_STACK_NATIVE, [IR_STACK_PYTHON] = ABI_STACK_USER | ABI_STACK_PYTHON,
		[IR_STACK_MIXED] = ABI_STACK_USER | ABI_STACK_NATIVE | ABI_STACK_PYTHON,
		[IR_STACK_FUNCTIONS] = ABI_STACK_USER | ABI_STACK_PYTHON | ABI_STACK_FUNCTIONS,
		[IR_STACK_INSTRUCTIONS] = ABI_STACK_USER | ABI_STACK_PYTHON | ABI_STACK_INSTRUCTIONS,
	};
	struct assembler *as = &g->as;
	int64_t whose = gen_constant(g, i->args[0]);

	if (i->fn == IR_FN_ADDR) {
		gen_load(g, R4, i->args[1]);
		asm_imm(as, R2, whose ? ABI_STACK_USER : 0);
		asm_imm(as, R3, 1);
	} else if (whose == IR_STACK_KERNEL) {
		gen_refuse(g, "the kernel's stack is for the kernel place: use -x place=kernel");
		return;
	} else {
		asm_imm(as, R4, 0);
		asm_imm(as, R2, ((uint64_t)whose < sizeof(flags) / sizeof(flags[0]) ? flags[whose] : ABI_STACK_USER) |
					(i->fn == IR_FN_AWAITERS ? ABI_STACK_AWAITERS : 0));
		asm_imm(as, R3, has_stack(g) ? frames_of(g, i) : 0);
	}
	asm_map(as, R1, EBPF_MAP_OUT);
	asm_helper(as, ABI_HELPER_STACK);
	gen_put(g, i, R0);
}

void gen_make_stack(struct gen *g, enum ir_stack whose, uint32_t frames)
{
	bool native = whose < IR_STACK_PYTHON || whose == IR_STACK_MIXED;
	uint32_t read = native ? frames + (whose ? 0 : OWN_FRAMES) : 0;

	read_stack(g, whose, read);
	hash(g, whose, read);
	if (whose >= IR_STACK_PYTHON && has_stack(g))
		gen_python(g, frames, whose != IR_STACK_FUNCTIONS);
	tell(g, whose, frames);
}

/* FRAME_TMP2 = the number of the address that @i asks to name. */
static void make_address(struct gen *g, const struct ir_insn *i, enum ir_stack whose)
{
	struct assembler *as = &g->as;

	asm_st(as, BPF_DW, R9, (int)g->priv->work_off + ADDRS, gen_use(g, i->args[1], R1));
	asm_imm(as, R0, 8);
	asm_st(as, BPF_DW, R10, FRAME_POS, R0);
	hash(g, whose, 1);
	tell(g, whose, 1);
}

void gen_stack(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	int64_t whose = IR_STACK_KERNEL;
	uint32_t done = asm_label(as);

	if (g->env->user_space) {
		stack_here(g, i);
		return;
	}
	if (!fits(g))
		return;
	whose = gen_constant(g, i->args[0]);
	if (i->fn == IR_FN_ADDR) {
		make_address(g, i, (enum ir_stack)whose);
	} else {
		if (gen_tp_other_task(g) && !g->in_error)
			gen_kept_stack(g, (enum ir_stack)whose, frames_of(g, i), done);
		gen_make_stack(g, (enum ir_stack)whose, frames_of(g, i));
	}
	asm_bind(as, done);
	asm_ld(as, BPF_DW, R0, R10, FRAME_TMP2);
	gen_put(g, i, R0);
}

/* R1 = the address of frame @k of the stack in the work area, or 0 after its last frame. */
static void frame_at(struct gen *g, uint32_t k)
{
	struct assembler *as = &g->as;
	uint32_t out = asm_label(as);

	asm_ld(as, BPF_DW, R0, R10, FRAME_POS);
	asm_imm(as, R1, 0);
	asm_ji(as, BPF_JLE, R0, (int32_t)(8 * k), out);
	asm_ld(as, BPF_DW, R1, R9, (int)g->priv->work_off + ADDRS + 8 * (int)k);
	asm_bind(as, out);
}

void gen_frame(struct gen *g, const struct ir_insn *i)
{
	int64_t n = gen_constant(g, i->args[0]);

	if (!fits(g))
		return;
	asm_imm(&g->as, R1, 0);
	if (n >= 0 && n < PLAN_STACK_FRAMES - OWN_FRAMES) {
		read_stack(g, true, (uint32_t)n + 1 < 2 ? 2 : (uint32_t)n + 1);
		frame_at(g, (uint32_t)n);
	}
	gen_put(g, i, R1);
}

/*
 * R1 = the caller of the first frame of a kernel stack that is not the tracing's own: at a tracepoint the program's
 * frame is followed by kernel functions that called it.  R3 = how many frames precede that first one.
 */
static void first_caller(struct gen *g)
{
	struct assembler *as = &g->as;
	uint32_t found = asm_label(as);

	for (uint32_t k = 1; k <= OWN_FRAMES; k++) {
		uint32_t own = asm_label(as);

		frame_at(g, k);
		asm_imm(as, R3, k);
		for (int n = 0; n < EBPF_TP_OWN && k < OWN_FRAMES; n++) {
			uint32_t other = asm_label(as);

			if (!g->env->own[n].hi)
				continue;
			asm_imm(as, R2, (int64_t)g->env->own[n].lo);
			asm_j(as, BPF_JLT, R1, R2, other);
			asm_imm(as, R2, (int64_t)g->env->own[n].hi);
			asm_j(as, BPF_JLT, R1, R2, own);
			asm_bind(as, other);
		}
		frame_at(g, k + 1);	/* leaves R3 alone */
		asm_ja(as, found);
		asm_bind(as, own);
	}
	asm_bind(as, found);
}

void gen_stack_builtin(struct gen *g, enum ir_builtin bi)
{
	struct assembler *as = &g->as;
	bool user = bi == IR_B_UCALLER || bi == IR_B_USTACKDEPTH, depth = bi == IR_B_STACKDEPTH || bi == IR_B_USTACKDEPTH;
	bool own = !user && g->env->ctx == EBPF_CTX_TP;

	if (!fits(g))
		return;
	if (gen_tp_other_task(g) && !g->in_error) {
		gen_drop(g, ABI_DROP_STACK);
		asm_imm(as, R1, 0);
		return;
	}
	if (own && !g->env->own[0].hi) {
		gen_refuse(g, "caller and stackdepth: /proc/kallsyms does not tell which functions are the tracing's own");
		return;
	}
	read_stack(g, user, depth ? PLAN_STACK_FRAMES : 2 + (own ? OWN_FRAMES + 1 : 0));
	if (own)
		first_caller(g);
	else
		frame_at(g, 1);
	if (depth) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
		asm_alui(as, BPF_RSH, R1, 3);
	}
	if (depth && own)
		asm_alu(as, BPF_SUB, R1, R3);
}
