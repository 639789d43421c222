/*
 * Records: the output stream's elements (abi/record.h).
 */
#include "bpf/gen.h"

#include <stddef.h>

#include "abi/segment.h"
#include "abi/stat.h"
#include "ir/layout.h"

void gen_header(struct gen *g, int base, int off, uint32_t rec)
{
	struct assembler *as = &g->as;

	asm_helper(as, BPF_FUNC_get_smp_processor_id);
	asm_st(as, BPF_W, base, off + (int)offsetof(struct abi_record, cpu), R0);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TIME);
	asm_st(as, BPF_DW, base, off + (int)offsetof(struct abi_record, time_ns), R1);
	asm_sti(as, BPF_W, base, off + (int)offsetof(struct abi_record, rec), (int32_t)rec);
	if (g->in_error)
		asm_imm(as, R1, g->env->error_probe);
	else
		asm_ld(as, BPF_DW, R1, R10, FRAME_PROBE);
	asm_st(as, BPF_W, base, off + (int)offsetof(struct abi_record, probe), R1);
	asm_ld(as, BPF_DW, R1, R10, FRAME_TASK);	/* tid and pid, as the record has them */
	asm_st(as, BPF_DW, base, off + (int)offsetof(struct abi_record, tid), R1);
}

/*
 * Waking the tracer costs more than the record: only records that find the stream about a quarter full do it, not all
 * that follow.  The tracer also polls now and then.
 */
enum { WAKE_WINDOW = 4096 };

/* R4 = the flag that says whether the next record wakes the tracer.  In user space the helper decides. */
static void gen_wake(struct gen *g)
{
	uint32_t quarter = g->unit->maps[EBPF_MAP_OUT].max_entries / 4;
	struct assembler *as = &g->as;
	uint32_t quiet = asm_label(as);

	if (!g->env->user_space) {
		asm_map(as, R1, EBPF_MAP_OUT);
		asm_imm(as, R2, BPF_RB_AVAIL_DATA);
		asm_helper(as, BPF_FUNC_ringbuf_query);
	}
	asm_imm(as, R4, BPF_RB_NO_WAKEUP);
	if (!g->env->user_space) {
		asm_ji(as, BPF_JLT, R0, (int32_t)quarter, quiet);
		asm_ji(as, BPF_JGE, R0, (int32_t)(quarter + WAKE_WINDOW), quiet);
		asm_imm(as, R4, BPF_RB_FORCE_WAKEUP);
	}
	asm_bind(as, quiet);
}

void gen_output(struct gen *g, int base, int off, uint32_t size)
{
	struct assembler *as = &g->as;
	uint32_t ok = asm_label(as);

	gen_wake(g);
	asm_map(as, R1, EBPF_MAP_OUT);
	asm_mov(as, R2, base);
	asm_alui(as, BPF_ADD, R2, off);
	if (size)
		asm_imm(as, R3, size);
	else
		asm_ld(as, BPF_DW, R3, R10, FRAME_POS);
	asm_helper(as, BPF_FUNC_ringbuf_output);
	asm_ji(as, BPF_JEQ, R0, 0, ok);
	gen_drop(g, ABI_DROP_RECORD);
	asm_bind(as, ok);
}

static void string_field(struct gen *g, ir_reg r, int slot)
{
	struct assembler *as = &g->as;

	gen_str_to(g, r, (struct dest){ g->priv->work_off, true });
	asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
	asm_mov(as, R2, R0);
	asm_alui(as, BPF_LSH, R2, 32);
	asm_alu(as, BPF_OR, R2, R1);
	asm_st(as, BPF_DW, R9, slot, R2);
	asm_alu(as, BPF_ADD, R1, R0);
	asm_st(as, BPF_DW, R10, FRAME_POS, R1);
}

/* Copy the statistic at FRAME_ELEM: it follows the slots, before all strings. */
static void stat_field(struct gen *g, const struct ir_map *m, int slot, uint32_t off)
{
	struct assembler *as = &g->as;
	uint32_t bytes = ir_stat_words(m) * 8;

	gen_scratch(g, R1, g->priv->work_off + off);
	asm_imm(as, R2, bytes);
	asm_ld(as, BPF_DW, R3, R10, FRAME_ELEM);
	asm_alui(as, BPF_ADD, R3, ABI_ELEMENT_VALUE);
	asm_helper(as, BPF_FUNC_probe_read_kernel);
	asm_imm(as, R1, (int64_t)((uint64_t)bytes << 32 | off));
	asm_st(as, BPF_DW, R9, slot, R1);
	asm_imm(as, R1, off + bytes);
	asm_st(as, BPF_DW, R10, FRAME_POS, R1);
}

/* --- in user space ------------------------------------------------------------------------------------ */

/* Is the field's string one that the helper can take by its address: it lies somewhere, or is read whole? */
static bool has_address(const struct gen *g, ir_reg r)
{
	const struct ir_insn *late = g->plan->late[r];
	int64_t size;

	return !late || (late->op == IR_CALL && late->fn == IR_FN_COPYINSTR && gen_is_const(g, late->args[1], &size) &&
			 (size < 0 || size >= g->prog->strsize));
}

/* Can the process build the record straight in its ring (ABI_HELPER_RECORD)? */
static bool is_direct(const struct gen *g, const struct ir_insn *i)
{
	if (!g->env->user_space || i->rec->stat || i->rec->nfields > ABI_RECORD_FIELDS)
		return false;
	for (uint32_t k = 0; k < i->rec->nfields; k++)
		if (i->rec->fields[k].type == IR_STR && !has_address(g, i->args[k]))
			return false;
	return true;
}

/* Go to the fault of the string whose field's number, counted from 1, is in R0. */
static void string_faults(struct gen *g, const struct ir_insn *i, uint64_t strings, int slots)
{
	struct assembler *as = &g->as;

	asm_mov(as, R1, R0);
	asm_alui(as, BPF_LSH, R1, 3);
	asm_alu(as, BPF_ADD, R1, R9);
	asm_ld(as, BPF_DW, R1, R1, slots - 8);
	asm_st(as, BPF_DW, R10, FRAME_TMP2, R1);
	for (uint32_t k = 0; k < i->rec->nfields; k++) {
		const struct ir_insn *late = g->plan->late[i->args[k]];

		if (!(strings >> k & 1))
			continue;
		g->insn = late ? late : i;	/* as in gen_str_to() */
		asm_ji(as, BPF_JEQ, R0, (int32_t)k + 1, gen_fault(g, ABI_FAULT_BADADDR, FRAME_TMP2));
		g->insn = i;
	}
}

/* The record's header but for what the helper adds, and its slots. */
static uint64_t store_fields(struct gen *g, const struct ir_insn *i, int base)
{
	int slots = base + (int)sizeof(struct abi_record);
	struct assembler *as = &g->as;
	uint64_t strings = 0;

	for (uint32_t k = 0; k < i->rec->nfields; k++) {
		const struct ir_insn *late = g->plan->late[i->args[k]];
		bool text = i->rec->fields[k].type == IR_STR;
		int from = R1;

		strings |= (uint64_t)text << k;
		if (text && !late)
			gen_str(g, R1, i->args[k]);
		else
			from = gen_use(g, text ? late->args[0] : i->args[k], R1);
		asm_st(as, BPF_DW, R9, slots + 8 * (int)k, from);
	}
	asm_ld(as, BPF_DW, R1, R10, FRAME_TIME);
	asm_st(as, BPF_DW, R9, base + (int)offsetof(struct abi_record, time_ns), R1);
	/* rec and probe at once, as they are read */
	if (g->in_error) {
		asm_imm(as, R1, (int64_t)((uint64_t)g->env->error_probe << 32 | i->rec->id));
	} else {
		asm_ld(as, BPF_DW, R1, R10, FRAME_PROBE);
		asm_alui(as, BPF_LSH, R1, 32);
		asm_alui(as, BPF_OR, R1, (int32_t)i->rec->id);
	}
	asm_st(as, BPF_DW, R9, base + (int)offsetof(struct abi_record, rec), R1);
	return strings;
}

static void emit_direct(struct gen *g, const struct ir_insn *i, int base)
{
	uint32_t size = (uint32_t)ir_rec_max(i->rec, g->prog->strsize), ok = asm_label(&g->as), lost = asm_label(&g->as);
	struct assembler *as = &g->as;
	uint64_t strings = store_fields(g, i, base);

	_Static_assert(offsetof(struct abi_record, probe) == offsetof(struct abi_record, rec) + 4, "one word");
	asm_map(as, R1, EBPF_MAP_OUT);
	gen_scratch(g, R2, (uint32_t)base);
	asm_imm(as, R3, size);
	asm_imm(as, R4, (int64_t)strings);
	asm_imm(as, R5, (int64_t)((uint64_t)g->prog->strsize << 32 | i->rec->nfields));
	asm_helper(as, ABI_HELPER_RECORD);
	asm_ji(as, BPF_JEQ, R0, 0, ok);
	if (strings) {
		asm_ji(as, BPF_JSLT, R0, 0, lost);
		string_faults(g, i, strings, base + (int)sizeof(struct abi_record));
	}
	asm_bind(as, lost);
	gen_drop(g, ABI_DROP_RECORD);
	asm_bind(as, ok);
}

/* ------------------------------------------------------------------------------------------------------- */

void gen_emit(struct gen *g, const struct ir_insn *i)
{
	const struct ir_rec *rec = i->rec;
	struct assembler *as = &g->as;
	int base = (int)g->priv->work_off, slots = base + (int)sizeof(struct abi_record);
	int fixed = (int)sizeof(struct abi_record) + 8 * ((int)rec->nfields + (rec->stat != NULL));
	bool strs = rec->stat != NULL;

	if (base + fixed > INT16_MAX) {
		gen_refuse(g, "a clause has too many values at a time");
		return;
	}
	if (is_direct(g, i)) {
		emit_direct(g, i, base);
		return;
	}
	if (rec->stat)
		gen_find_stat(g, rec->stat, i->args + rec->nfields);
	asm_imm(as, R1, fixed);
	asm_st(as, BPF_DW, R10, FRAME_POS, R1);
	if (rec->stat)
		stat_field(g, rec->stat, slots + 8 * (int)rec->nfields, (uint32_t)fixed);
	for (uint32_t k = 0; k < rec->nfields; k++) {
		int slot = slots + 8 * (int)k;

		if (rec->fields[k].type == IR_STR) {
			string_field(g, i->args[k], slot);
			strs = true;
		} else {
			asm_st(as, BPF_DW, R9, slot, gen_use(g, i->args[k], R1));
		}
	}
	gen_header(g, R9, base, rec->id);
	if (strs) {
		asm_ld(as, BPF_DW, R1, R10, FRAME_POS);
		asm_alui(as, BPF_ADD, R1, 7);
		asm_alui(as, BPF_AND, R1, -8);
		asm_st(as, BPF_DW, R10, FRAME_POS, R1);
		asm_st(as, BPF_W, R9, base + (int)offsetof(struct abi_record, size), R1);
	} else {
		asm_sti(as, BPF_W, R9, base + (int)offsetof(struct abi_record, size), fixed);
	}
	gen_output(g, R9, base, strs ? 0 : (uint32_t)fixed);
}

/* R1 = the session's state, R2 = its address. */
static void load_state(struct gen *g)
{
	asm_map_value(&g->as, R2, EBPF_MAP_CONTROL, offsetof(struct abi_control, state));
	asm_ld(&g->as, BPF_W, R1, R2, 0);
}

void gen_exiting(struct gen *g, const struct ir_insn *i)
{
	uint32_t over = asm_label(&g->as);

	(void)i;
	load_state(g);
	asm_ji(&g->as, BPF_JEQ, R1, ABI_STATE_COOLDOWN, over);
	asm_sti(&g->as, BPF_W, R2, 0, ABI_STATE_DRAINING);
	asm_bind(&g->as, over);
}

void gen_exit_check(struct gen *g, uint32_t out)
{
	load_state(g);
	asm_ji(&g->as, BPF_JEQ, R1, ABI_STATE_DRAINING, out);
}

void gen_gate(struct gen *g, const struct ir_insn *i)
{
	(void)i;
	if (!g->in_error)
		gen_exit_check(g, g->end);
}
