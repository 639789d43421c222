/*
 * Code generation, shared by its files: gen_int.c (arithmetic), gen_ctx.c (arguments, builtins), gen_str.c
 * (strings, runtime functions), gen_key.c (keys), gen_var.c (variables and arrays), gen_flow.c (loops, calls, caught
 * faults), gen_agg.c and gen_rec.c.
 * emit.c has the program around the clauses, and the table of who generates which operation.
 *
 * R0 to R5 are free between any two lines of a generator that call nothing.  R6 to R8 hold the clause's
 * integers, R9 the scratch slot; in a clause with loops R8 is the address of the frame of the procedure that was ENTERed
 * last.  A generator writes its destination last (gen_put), behind every fault
 * it may raise: the fault's value can still be an operand then.
 */
#ifndef DTAP_BPF_GEN_H
#define DTAP_BPF_GEN_H

#include "abi/record.h"
#include "abi/segment.h"
#include "bpf/asm.h"
#include "bpf/frame.h"
#include "bpf/unit.h"

/* Where a fault of the clause being generated jumps to, and what it reports there. */
struct stub {
	uint32_t label, at;	/* at: the instruction that found it */
	const struct region *region;	/* where it was, when that is known */
	uint32_t act;
	enum abi_fault kind;
	int value_off;		/* the value is in this word of the frame; NO_VALUE: it is 0 */
};

enum { NO_VALUE = 0 };

struct gen {
	struct assembler as;
	const struct ebpf_unit *unit;
	const struct ebpf_private *priv;
	const struct ir_prog *prog;
	const struct ebpf_env *env;

	/* The clause: */
	const struct ir_clause *clause;
	const struct plan *plan;
	unsigned int number;		/* in the program's list */
	bool in_error;			/* it is a clause of ERROR, run for a fault */
	const struct ir_block *block, *next;	/* at hand, and the one that will follow */
	uint32_t *labels;		/* by block */
	uint32_t end;			/* label behind the clause */
	const struct ir_insn *insn;
	const struct ir_insn **enters, **tries;	/* its ENTERs, and TRYs unless the plan has regions */
	const struct region *region;	/* this place's */
	uint32_t *caught;		/* label by region: from there on to who catches */
	uint32_t nenters, ntries;
	uint32_t uncopied;		/* label of the fault of a string that cannot be copied; or ASM_UNSET */
	uint32_t leave, catch;		/* labels: where LEAVE goes, and faults when there are tries */
	uint32_t iter_next;		/* label: to the next element of an iteration */
	uint32_t dirty;			/* words of the frame that its instructions use (gen_flow.c) */
	uint32_t *turns;		/* labels: where turns begin that are called (gen_turn.c) */
	uint32_t nturns, resume;	/* and the label of what chooses among them */
	size_t turns_cap;
	struct stub *stubs;
	uint32_t nstubs;
	size_t stubs_cap;

	uint32_t needs;			/* of all clauses: enum plan_need */
	bool faults_in;			/* it reads memory of the user's that may have to be faulted in first */
	const char *err;		/* the first thing that could not be generated */
};

typedef void gen_fn(struct gen *g, const struct ir_insn *i);

gen_fn gen_const, gen_strc, gen_mov, gen_alu, gen_divide, gen_unary, gen_ext, gen_compare, gen_strcmp;
gen_fn gen_jmp, gen_br, gen_ret, gen_raise, gen_builtin, gen_arg, gen_call, gen_load_mem;
gen_fn gen_turn, gen_budget, gen_spend, gen_pass, gen_enter, gen_leave, gen_try, gen_endtry, gen_raise_text, gen_caught;
gen_fn gen_caughtstr, gen_failed, gen_mclear, gen_stat, gen_extract, gen_sbucket;
gen_fn gen_match, gen_sprintf, gen_iter, gen_inext, gen_ikey, gen_ivalue, gen_idone;
gen_fn gen_vld, gen_vst, gen_vadd, gen_mld, gen_mst, gen_madd, gen_mhas, gen_mdel, gen_agg, gen_emit, gen_exiting, gen_gate;

/* --- operands ---------------------------------------------------------------------------------------- */

/* The register that has the integer @r: its own, or @tmp, loaded. */
int gen_use(struct gen *g, ir_reg r, int tmp);

/* Load the integer @r into @reg. */
void gen_load(struct gen *g, int reg, ir_reg r);

/* Is the integer @r a constant? */
bool gen_is_const(const struct gen *g, ir_reg r, int64_t *v);

/* Register @reg has the value of the destination of @i. */
void gen_put(struct gen *g, const struct ir_insn *i, int reg);

/* Sign or zero extend the low @width bytes of @reg in place. */
void gen_extend(struct gen *g, int reg, unsigned int width, bool sign);

/* @reg = the scratch slot + @off. */
void gen_scratch(struct gen *g, int reg, uint32_t off);

/* @reg = the address of string @r, which is not late. */
void gen_str(struct gen *g, int reg, ir_reg r);

/* --- faults and losses ------------------------------------------------------------------------------- */

/* The label to jump to for a fault of @kind, whose value the frame's word @value_off has by then. */
uint32_t gen_fault(struct gen *g, enum abi_fault kind, int value_off);

/* What stub @s does, its value in R1, if its fault can be caught; false: it cannot. */
bool gen_catchable(struct gen *g, const struct stub *s);

/* May what the user has in memory be faulted in here?  It is going to be. */
bool gen_faults_in(struct gen *g);

/* Count a loss. Uses R1 and R2. */
void gen_drop(struct gen *g, enum abi_drop what);

/* That cannot be generated; the first message stays. */
void gen_refuse(struct gen *g, const char *why);

/* Generate one instruction that is not late, or now is due. */
void gen_insn(struct gen *g, const struct ir_insn *i);

/* --- strings in place (gen_str.c) -------------------------------------------------------------------- */

/* A place for a string: the scratch slot + off (+ the frame's FRAME_POS when @behind). */
struct place {
	uint32_t off;
	bool behind;
};

/*
 * Put the string @r, late or not, at @to, where strsize bytes are free.  R0: its length with the NUL, 1 to
 * strsize, as the verifier knows too.
 */
void gen_str_to(struct gen *g, ir_reg r, struct place to);

/* The same for what @i makes: copyinstr, stringof, a variable or a builtin. */
void gen_make_str(struct gen *g, const struct ir_insn *i, struct place to);

/* Its part in gen_var.c. */
void gen_make_var_str(struct gen *g, const struct ir_insn *i, struct place to);

/* The buffer of the string that @i makes. */
struct place gen_str_dst(struct gen *g, const struct ir_insn *i);

/* @reg = the address of @to.  Uses R0. */
void gen_place(struct gen *g, int reg, struct place to);

/*
 * Copy the string at R3 to R1, with room for strsize bytes; R0 as above.  An @untrusted address may fault; any
 * other is in a map.
 */
void gen_copy_str(struct gen *g, bool untrusted);

/* Before a clause: nothing has matched yet. */
void gen_match_begin(struct gen *g);

/* --- keys (gen_key.c) -------------------------------------------------------------------------------- */

/*
 * Something done with a key: @each generates it, once per key class (ir/layout.h), with the key in place, and all of
 * them fall through to what follows gen_keyed.
 */
struct keyed_use {
	const struct keyed *keyed;
	const struct ir_slot *parts;
	const ir_reg *keys;
	uint32_t n;
	bool thread;			/* the thread is a hidden first integer */
	const struct ir_slot *value;	/* of an array */
	const struct ir_map *map;	/* an ordered one, or NULL */
	enum abi_drop drop;		/* what is lost when there is no room */
	uint32_t other;			/* where @each goes when there is no element */
	void (*each)(struct gen *g, const struct keyed_use *k, uint32_t map);
};

void gen_keyed(struct gen *g, const struct keyed_use *k);

/* R2 = the key. */
void gen_key_addr(struct gen *g, const struct keyed_use *k);

/* For @each: R0 = the element; to @other when there is none. */
void gen_key_find(struct gen *g, const struct keyed_use *k, uint32_t map);

/* For @each: R0 = the element, made of zeros if there was none; to @other when there is no room. */
void gen_key_get(struct gen *g, const struct keyed_use *k, uint32_t map);

/* For @each: remove the element; to @other when there is none. */
void gen_key_delete(struct gen *g, const struct keyed_use *k, uint32_t map);

/* Call @fn for each element of @map, with the frame from @ctx on as its context. */
void gen_walk(struct gen *g, uint32_t map, enum rt_fn fn, int ctx);

/* Store the thread's key at FRAME_THREAD. */
void gen_thread_key(struct gen *g);

/* --- control flow (gen_flow.c) ------------------------------------------------------------------------ */

/* Before a clause; behind it, what its LEAVEs lead to; behind its stubs, what they lead to. */
void gen_flow_begin(struct gen *g);
void gen_flow_returns(struct gen *g);
void gen_flow_catches(struct gen *g, uint32_t faulted);

/* Where a block begins that a procedure may begin with. */
void gen_procedure(struct gen *g, const struct ir_block *b);

/* Behind an instruction whose code begins at @from: the frame is as it was before. */
void gen_tidy(struct gen *g, uint32_t from);

/* R8 = the frame of call number R1 (0: of the clause itself), which is in range. */
void gen_set_frame(struct gen *g);

/* Zero the words of the frame that instructions use, and R6 to R8. */
void gen_clear_frame(struct gen *g);

/* @reg = where the IR_FRAME variable @v is, or (@next) will be in the call that is ENTERed next. */
void gen_frame_var(struct gen *g, int reg, const struct ir_var *v, bool next);

/* --- turns of loops (gen_turn.c) ---------------------------------------------------------------------- */

/* A word of the clause's state. */
static inline int gen_state(const struct gen *g, int word)
{
	return (int)g->priv->state_off + 8 * word;
}

/*
 * Each way round must come through one of these: on, or to @over when the clause has been in its loops for too long.  Only
 * R9, the program's values in the frame and (with NEED_CALLS) R8 are the same behind it.
 */
void gen_turn_point(struct gen *g, uint32_t over);

/*
 * Time was up at the turn point that was made last, where a fault is caught.  If turns are called: end the clause, but the
 * first time go on behind that point for some turns more, with the outermost TRY alone (none: to @none); true.
 */
bool gen_last_turns(struct gen *g, uint32_t none);

/* Somewhere in a program that has loops, where R0 to R5 are free. */
void gen_own_stack(struct gen *g);

/* Is the clause @plan is for a function of its own, each turn a call? */
bool gen_turns_called(const struct gen *g, const struct plan *plan);

/* In the program: run that function, which begins at @label.  And the function, around the clause. */
void gen_call_turns(struct gen *g, uint32_t label);
void gen_turns_begin(struct gen *g);
void gen_turns_end(struct gen *g, const struct plan *plan);

/* --- the program's values (gen_ctx.c) ---------------------------------------------------------------- */

/* Is the context the probe's index and the arguments, 8 bytes each? */
static inline bool gen_ctx_is_words(const struct gen *g)
{
	return g->env->ctx == EBPF_CTX_RUN || g->env->ctx == EBPF_CTX_TARGET;
}

void gen_prologue_values(struct gen *g, uint32_t needs);
/* R0 = the entry of the fired probe in the table; jumps to @none when there is none. */
void gen_probe_entry(struct gen *g, uint32_t none);
void gen_make_builtin_str(struct gen *g, const struct ir_insn *i, struct place to);

/* --- iterations (gen_iter.c) --------------------------------------------------------------------------- */

/* Before and behind a clause with @plan: buffers that are taken are given back. */
void gen_iters_begin(struct gen *g, const struct plan *plan);
void gen_iters_end(struct gen *g, const struct plan *plan);

/* FRAME_ELEM = the statistic of @m under the keys; an empty one faults. */
void gen_find_stat(struct gen *g, const struct ir_map *m, const ir_reg *keys);

/* --- tracepoints (gen_tp.c) --------------------------------------------------------------------------- */

/* To @out when the firing is none of this program's; else FRAME_PROBE is known, for system calls. */
void gen_tp_filter(struct gen *g, uint32_t out);
/* R1 = argument @n. */
void gen_tp_arg(struct gen *g, int64_t n);
/* R1 = the error of the system call that returns, or 0. */
void gen_tp_errno(struct gen *g);
/* Is the firing about another thread than the one that runs?  Then FRAME_TASK has it, once gen_tp_task has run. */
bool gen_tp_other_task(const struct gen *g);
void gen_tp_task(struct gen *g);
void gen_tp_task_addr(struct gen *g);	/* R1 = its struct task_struct */

/* R0 = the struct task_struct of the thread that the firing is about (gen_task.c). */
void gen_current_task(struct gen *g);

/* R1 = its fact @what, a number; what cannot be read is 0. */
void gen_task_id(struct gen *g, enum abi_task what);
/* That thread's command name into the 16 bytes at FRAME_KEY. */
void gen_tp_comm(struct gen *g);

/* --- the clause's own memory (gen_copy.c) -------------------------------------------------------------- */

/* Is @i a call of copyin or its like?  Its code is made. */
bool gen_copy(struct gen *g, const struct ir_insn *i);

/* --- stacks (gen_stack.c) ----------------------------------------------------------------------------- */

/* R1 = the pointer at offset @off of the kernel structure at R1; 0 when it cannot be read. */
void gen_follow(struct gen *g, uint32_t off);

/*
 * Add up to @frames of Python's behind what FRAME_POS says is in the record of a stack in the work area, to FRAME_POS,
 * and to the number in FRAME_TMP2.
 */
void gen_python(struct gen *g, uint32_t frames);

/*
 * Put up to @frames addresses of the user's stack in their place in the work area, by the tables of abi/unwind.h.  R0:
 * their bytes, at @done; or it goes on here: the process is not known.  Uses what gen_python uses.
 */
void gen_unwind(struct gen *g, uint32_t frames, uint32_t done);

/* Ask the tracer about the process. */
void gen_ask(struct gen *g);

/* IR_FN_STACK, IR_FN_ADDR */
void gen_stack(struct gen *g, const struct ir_insn *i);
/* R1 = the builtin: caller, ucaller, stackdepth or ustackdepth. */
void gen_stack_builtin(struct gen *g, enum ir_builtin bi);

/* --- what acts on the process (gen_act.c) ------------------------------------------------------------- */

/* Generate the call @i if it is rand or signal. */
bool gen_act(struct gen *g, const struct ir_insn *i);

/* IR_FN_REG (gen_ctx.c) */
void gen_register(struct gen *g, const struct ir_insn *i);

/* --- facts of processes (gen_task.c) ------------------------------------------------------------------ */

/* IR_FN_SELF, IR_FN_TASK */
void gen_task(struct gen *g, const struct ir_insn *i);

/* --- execargs (gen_exec.c) ---------------------------------------------------------------------------- */

/* The arguments of the process at @to, as gen_str_to; to @none when there are none. */
void gen_execargs(struct gen *g, struct place to, uint32_t none);

/* Jump to @out in processes of another program than env->exe_ino's. */
void gen_exe_filter(struct gen *g, uint32_t out);

/* --- paths (gen_path.c) ------------------------------------------------------------------------------- */

/* The path of the process's root or current directory at @to; R0 as gen_str_to has it. */
void gen_directory(struct gen *g, bool root, struct place to);

/* IR_FN_PATH */
void gen_path(struct gen *g, const struct ir_insn *i);

/* --- records (gen_rec.c) ------------------------------------------------------------------------------ */

/* To @out if the session is EXITING, unless END is what fires. */
void gen_exit_check(struct gen *g, uint32_t out);

/* Fill in the header at @base + @off: all but the size.  FRAME_TIME, FRAME_PROBE and FRAME_TASK are known. */
void gen_header(struct gen *g, int base, int off, uint32_t rec);

/* Output the record at @base + @off of @size bytes, or as many as the header says when that is 0 (FRAME_POS has
 * them, too). */
void gen_output(struct gen *g, int base, int off, uint32_t size);

#endif
