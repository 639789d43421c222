/*
 * Strings: their places, copies and comparison, and the runtime functions on them.
 */
#include "bpf/gen.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "bpf/rt/match.h"
#include "bpf/rt/put.h"
#include "lang/format.h"
#include "lang/regex.h"

/* --- destinations ------------------------------------------------------------------------------------------ */

void gen_scratch(struct gen *g, int reg, uint32_t off)
{
	asm_mov(&g->as, reg, R9);
	if (off)
		asm_alui(&g->as, BPF_ADD, reg, (int32_t)off);
}

void gen_dest(struct gen *g, int reg, struct dest to)
{
	gen_scratch(g, reg, to.off);
	if (to.behind) {
		asm_ld(&g->as, BPF_DW, R0, R10, FRAME_POS);
		asm_alu(&g->as, BPF_ADD, reg, R0);
	}
}

static uint32_t buffer_off(const struct gen *g, const struct loc *l)
{
	return g->priv->strs_off + (uint32_t)l->v * g->priv->str_buf;
}

void gen_str(struct gen *g, int reg, ir_reg r)
{
	const struct loc *l = &g->plan->locs[r];

	if (l->kind == LOC_RODATA)
		asm_map_value(&g->as, reg, EBPF_MAP_RODATA, (uint32_t)l->v);
	else if (l->kind == LOC_SCRATCH)
		gen_scratch(g, reg, buffer_off(g, l));
	else
		abort();	/* ir_check has seen a definition on every path to a use */
}

struct dest gen_str_dst(struct gen *g, const struct ir_insn *i)
{
	return (struct dest){ .off = buffer_off(g, &g->plan->locs[i->dst]) };
}

/* --- copying ----------------------------------------------------------------------------------------- */

void gen_copy_str(struct gen *g, bool untrusted)
{
	struct assembler *as = &g->as;

	if (untrusted)
		asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	/* A copy from a map cannot fail, but the verifier does not know that: one stub serves all of them, in
	 * whatever region. */
	if (!untrusted && g->uncopied == ASM_UNSET)
		g->uncopied = gen_fault(g, ABI_FAULT_BADADDR, NO_VALUE);
	asm_imm(as, R2, g->prog->strsize);
	asm_helper(as, BPF_FUNC_probe_read_kernel_str);
	asm_ji(as, BPF_JSLT, R0, 1, untrusted ? gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2) : g->uncopied);
}

/* Constants up to this many bytes are stored by instructions instead of copied by the kernel. */
enum { STORE_MAX = 64 };

static void store_const(struct gen *g, const char *s, struct dest to)
{
	uint32_t len = (uint32_t)strlen(s) + 1;

	gen_dest(g, R1, to);
	for (uint32_t k = 0; k < len; k += 4) {
		char bytes[4] = { 0 };
		int32_t v;

		memcpy(bytes, s + k, len - k < 4 ? len - k : 4);
		memcpy(&v, bytes, 4);
		asm_sti(&g->as, BPF_W, R1, (int)k, v);
	}
	asm_imm(&g->as, R0, len);
}

static const char *const_text(const struct gen *g, uint32_t off)
{
	for (uint32_t k = 0; k < g->priv->nstrs; k++) {
		if (g->priv->strs[k].off == off)
			return g->priv->strs[k].s;
	}
	abort();	/* plan.c got the offset from this table */
}

void gen_str_to(struct gen *g, ir_reg r, struct dest to)
{
	const struct loc *l = &g->plan->locs[r];
	const struct ir_insn *user = g->insn;

	if (g->plan->late[r]) {
		g->insn = g->plan->late[r];	/* its faults belong to it, not to its user */
		gen_make_str(g, g->insn, to);
		g->insn = user;
		return;
	}
	if (l->kind == LOC_RODATA) {
		const char *s = const_text(g, (uint32_t)l->v);

		if (strlen(s) < STORE_MAX && strlen(s) < g->prog->strsize) {
			store_const(g, s, to);
			return;
		}
	}
	gen_str(g, R3, r);
	gen_dest(g, R1, to);
	gen_copy_str(g, false);
}

/* A constant for a register with several definitions. */
void gen_strc(struct gen *g, const struct ir_insn *i)
{
	uint32_t off;

	if (g->plan->locs[i->dst].kind != LOC_SCRATCH)
		return;
	off = unit_rodata(g->prog, (struct ebpf_private *)g->priv, i->str);
	asm_map_value(&g->as, R3, EBPF_MAP_RODATA, off);
	gen_dest(g, R1, gen_str_dst(g, i));
	gen_copy_str(g, false);
}

/* R2 = the integer @r, as an unsigned number at most @max. */
static void load_size(struct gen *g, ir_reg r, uint32_t max)
{
	struct assembler *as = &g->as;
	uint32_t ok;
	int64_t v;

	if (gen_is_const(g, r, &v)) {
		asm_imm(as, R2, v < 0 || v > max ? max : v);
		return;
	}
	ok = asm_label(as);
	gen_load(g, R2, r);
	asm_ji(as, BPF_JLE, R2, (int32_t)max, ok);
	asm_imm(as, R2, max);
	asm_bind(as, ok);
}

/* R0 = length of the user's string at FRAME_TMP2, copied to @to. */
static void read_user_str(struct gen *g, const struct ir_insn *i, struct dest to)
{
	struct assembler *as = &g->as;
	uint32_t some = asm_label(as), counted = asm_label(as);
	int64_t v;

	load_size(g, i->args[1], g->prog->strsize);
	if (!gen_is_const(g, i->args[1], &v) || v == 0) {
		/* Not even room for the NUL: the empty string. */
		asm_ji(as, BPF_JNE, R2, 0, some);
		asm_imm(as, R2, 1);
		asm_bind(as, some);
	}
	gen_dest(g, R1, to);
	asm_ld(as, BPF_DW, R3, R10, FRAME_TMP2);
	asm_helper(as, BPF_FUNC_probe_read_user_str);
	if (g->env->user_space)
		return;
	/* Older kernels do not count the NUL of an empty string (Linux 6.1). */
	asm_ji(as, BPF_JNE, R0, 0, counted);
	asm_imm(as, R0, 1);
	asm_bind(as, counted);
}

static void copyinstr(struct gen *g, const struct ir_insn *i, struct dest to)
{
	struct assembler *as = &g->as;

	gen_load(g, R3, i->args[0]);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R3);
	read_user_str(g, i, to);
	if (gen_faults_in(g)) {
		uint32_t ok = asm_label(as);

		asm_ji(as, BPF_JSGT, R0, 0, ok);
		asm_ld(as, BPF_DW, R1, R10, FRAME_TMP2);
		asm_imm(as, R2, g->prog->strsize);
		asm_rt(as, RT_TOUCH);
		read_user_str(g, i, to);
		asm_bind(as, ok);
	}
	asm_ji(as, BPF_JSLT, R0, 1, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
}

void gen_make_str(struct gen *g, const struct ir_insn *i, struct dest to)
{
	if (i->op == IR_BUILTIN) {
		gen_make_builtin_str(g, i, to);
	} else if (i->op == IR_VLD) {
		gen_make_var_str(g, i, to);
	} else if (i->fn == IR_FN_COPYINSTR) {
		copyinstr(g, i, to);
	} else if (gen_asks_value(i->fn)) {
		gen_value_str(g, i, to);
	} else {
		gen_load(g, R3, i->args[0]);
		gen_dest(g, R1, to);
		gen_copy_str(g, true);
	}
}

void gen_make(struct gen *g, const struct ir_insn *i)
{
	gen_make_str(g, i, gen_str_dst(g, i));
}

/* --- comparison ----------------------------------------------------------------------------------------- */

void gen_strcmp(struct gen *g, const struct ir_insn *i)
{
	gen_str(g, R1, i->args[0]);
	if (g->env->user_space) {
		gen_str(g, R3, i->args[1]);
		asm_imm(&g->as, R2, g->prog->strsize);
		asm_imm(&g->as, R4, g->prog->strsize);
		asm_helper(&g->as, ABI_HELPER_STRCMP);
	} else {
		gen_str(g, R2, i->args[1]);
		asm_imm(&g->as, R3, g->prog->strsize);
		asm_rt(&g->as, RT_STRCMP);
	}
	gen_put(g, i, R0);
}

/* --- sprintf ------------------------------------------------------------------------------------------- */

static void put_literal(struct gen *g, const char *s, size_t len)
{
	uint32_t off;

	if (!len)
		return;
	off = unit_rodata(g->prog, (struct ebpf_private *)g->priv, arena_strndup(g->prog->arena, s, len));
	gen_scratch(g, R1, g->priv->work_off);
	asm_map_value(&g->as, R2, EBPF_MAP_RODATA, off);
	asm_imm(&g->as, R3, (int64_t)PUT_NO_PREC << PUT_PREC_SHIFT);
	asm_imm(&g->as, R4, g->prog->strsize);
	asm_rt(&g->as, RT_PUT_STR);
}

/* R3 |= the width (@shift 0) or precision in the register @r; a negative one as in C. */
static void dynamic(struct gen *g, ir_reg r, int shift)
{
	struct assembler *as = &g->as;
	uint32_t positive = asm_label(as), fits = asm_label(as);

	gen_load(g, R1, r);
	asm_ji(as, BPF_JSGE, R1, 0, positive);
	if (shift) {
		asm_imm(as, R1, PUT_NO_PREC);
		asm_ja(as, fits);
	} else {
		asm_imm(as, R2, (int64_t)FMT_LEFT << PUT_FLAGS_SHIFT);
		asm_alu(as, BPF_OR, R3, R2);
		asm_neg(as, R1);
	}
	asm_bind(as, positive);
	asm_ji(as, BPF_JLE, R1, PUT_MAX, fits);
	asm_imm(as, R1, PUT_MAX);
	asm_bind(as, fits);
	if (shift)
		asm_alui(as, BPF_LSH, R1, shift);
	asm_alu(as, BPF_OR, R3, R1);
}

/* Generate conversion @c of the operands from @args on; returns how many it took. */
static unsigned int put_conversion(struct gen *g, const struct fmt_conv *c, const ir_reg *args)
{
	struct assembler *as = &g->as;
	uint64_t look = (uint64_t)(c->has_width ? c->width : 0) | (uint64_t)c->flags << PUT_FLAGS_SHIFT |
			(uint64_t)(uint8_t)c->letter << PUT_LETTER_SHIFT;
	unsigned int n = 0;

	if (!c->dyn_prec)
		look |= (uint64_t)(c->has_prec ? c->prec : PUT_NO_PREC) << PUT_PREC_SHIFT;
	asm_imm(as, R3, (int64_t)look);
	if (c->dyn_width)
		dynamic(g, args[n++], 0);
	if (c->dyn_prec)
		dynamic(g, args[n++], PUT_PREC_SHIFT);
	gen_operand(g, R2, args[n++]);
	gen_scratch(g, R1, g->priv->work_off);
	asm_imm(as, R4, g->prog->strsize);
	asm_rt(as, c->kind == FMT_STRING ? RT_PUT_STR : RT_PUT_INT);
	return n;
}

void gen_sprintf(struct gen *g, const struct ir_insn *i)
{
	struct assembler *as = &g->as;
	const ir_reg *args = i->args;

	_Static_assert(FMT_LEFT == 1 && FMT_PLUS == 2 && FMT_SPACE == 4 && FMT_ALT == 8 && FMT_ZERO == 16,
		       "as rt/put.c has them");
	gen_scratch(g, R1, g->priv->work_off);
	asm_sti(as, BPF_DW, R1, 0, 0);
	asm_sti(as, BPF_DW, R1, PUT_STATE, 0);
	for (size_t k = 0; k < i->fmt->n; k++) {
		const struct fmt_conv *c = &i->fmt->convs[k];

		put_literal(g, c->lit, c->lit_len);
		if (c->kind == FMT_NONE)
			continue;
		if (c->letter == 'b' || c->letter == 'm' || c->letter == 'M')
			gen_refuse(g, "sprintf: %b, %m and %M make bytes that a string cannot have: use printf");
		args += put_conversion(g, c, args);
	}
	gen_scratch(g, R3, g->priv->work_off + PUT_STATE);
	gen_dest(g, R1, gen_str_dst(g, i));
	gen_copy_str(g, false);
}

/* --- regular expressions -------------------------------------------------------------------------------- */

void gen_match_begin(struct gen *g)
{
	if (!g->priv->matched || !(g->plan->needs & NEED_SCRATCH))
		return;
	gen_scratch(g, R1, g->priv->match_off);
	for (int k = 0; k < MATCH_KEPT; k++)
		asm_sti(&g->as, BPF_DW, R1, 8 * k, -1);
}

/* Keep what matched, the string @r. */
static void keep_match(struct gen *g, ir_reg r)
{
	struct assembler *as = &g->as;

	gen_scratch(g, R1, g->priv->match_off);
	asm_imm(as, R2, 8 * MATCH_KEPT);
	gen_scratch(g, R3, g->priv->work_off + 8 * MATCH_SAVED);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	gen_str(g, R3, r);
	gen_scratch(g, R1, g->priv->match_off + 8 * MATCH_KEPT);
	gen_copy_str(g, false);
}

void gen_matched(struct gen *g, const struct ir_insn *i)
{
	gen_dest(g, R1, gen_str_dst(g, i));
	gen_scratch(g, R2, g->priv->match_off);
	asm_imm(&g->as, R3, g->prog->strsize);
	gen_load(g, R4, i->args[0]);
	asm_rt(&g->as, RT_MATCHED);
}

void gen_match(struct gen *g, const struct ir_insn *i)
{
	const struct rodata_regex *re = g->priv->regexes;
	struct assembler *as = &g->as;
	uint32_t none = asm_label(as);

	_Static_assert(REGEX_SLOTS == (int)MATCH_MAX_SLOTS && REGEX_MAX_CODE == (int)MATCH_MAX_CODE &&
		       REGEX_MAX_ROWS == (int)MATCH_MAX_ROWS, "as rt/match.h has them");
	while (strcmp(re->text, i->str))
		re++;
	asm_map_value(as, R1, EBPF_MAP_RODATA, re->off);
	asm_imm(as, R2, (int64_t)((uint64_t)re->re->ncode | (uint64_t)re->re->nwords << 16 |
				  (uint64_t)g->prog->strsize << 32 | (uint64_t)re->re->nslots << MATCH_SLOTS_SHIFT |
				  (uint64_t)re->re->anchored << MATCH_ANCHORED_SHIFT));
	gen_str(g, R3, i->args[0]);
	gen_scratch(g, R4, g->priv->work_off);
	asm_rt(as, RT_MATCH);
	asm_ji(as, BPF_JSLT, R0, 0, gen_fault(g, ABI_FAULT_TIME, NO_VALUE));
	asm_st(as, BPF_DW, R10, FRAME_TMP, R0);
	if (g->priv->matched) {
		asm_ji(as, BPF_JEQ, R0, 0, none);
		keep_match(g, i->args[0]);
		asm_bind(as, none);
	}
	asm_ld(as, BPF_DW, R1, R10, FRAME_TMP);
	gen_put(g, i, R1);
}
