/*
 * Code generation, shared by its files: gen_int.c (arithmetic), gen_ctx.c (arguments, builtins), gen_str.c (strings),
 * gen_call.c (functions), gen_key.c (keys), gen_var.c (variables and arrays), gen_flow.c (loops, calls, caught faults),
 * gen_agg.c and gen_rec.c.  emit.c generates the program around the clauses; the row of an operation or a function in
 * ir/ops.def or ir/funcs.def names its generator.
 *
 * A generator may use R0 to R5, and so may every function that it calls.  R6 to R8 hold the clause's integers, R9 the
 * scratch slot; in a clause with procedures R8 is the address of the frame of the one ENTERed last.  A generator writes
 * its destination last (gen_put), after every fault it may raise: a fault's value can be an operand.
 */
#ifndef DTAP_BPF_GEN_H
#define DTAP_BPF_GEN_H

#include "abi/record.h"
#include "abi/segment.h"
#include "arch/arch.h"
#include "bpf/asm.h"
#include "bpf/frame.h"
#include "bpf/unit.h"

/* Where a fault of the clause being generated jumps to, and what it reports there. */
struct stub {
	uint32_t label, at;	/* at: number of the instruction */
	const struct region *region;	/* the region it is in, if known */
	uint32_t act;
	enum abi_fault kind;
	int value_off;		/* the value is in this word of the frame; NO_VALUE: it is 0 */
};

enum { NO_VALUE = 0 };

struct gen {
	struct assembler as;
	const struct arch_kept *kept;	/* struct pt_regs of the target machine */
	const struct ebpf_unit *unit;
	const struct ebpf_private *priv;
	const struct ir_prog *prog;
	const struct ebpf_env *env;

	/* The clause: */
	const struct ir_clause *clause;
	const struct plan *plan;
	unsigned int number;		/* in the program's list */
	bool in_error;			/* it is a clause of ERROR, run for a fault */
	const bool *settled;		/* ir_settled(), if @settles */
	const struct ir_block *block, *next;	/* the current one, and the one generated next */
	uint32_t *labels;		/* by block */
	uint32_t end;			/* label after the clause */
	const struct ir_insn *insn;
	const struct ir_insn **enters, **tries;	/* its ENTERs, and TRYs unless the plan has regions */
	const struct region *region;	/* of the current instruction */
	uint32_t *caught;		/* label by region: the jump to its handler */
	uint32_t nenters, ntries;
	uint32_t answered;		/* label behind a question that the one before has answered, too (gen_value.c); or ASM_UNSET */
	uint32_t uncopied;		/* label of the fault of a string that cannot be copied; or ASM_UNSET */
	uint32_t leave, catch;		/* labels: where LEAVE goes, and faults when there are tries */
	uint32_t iter_next;		/* label: to the next element of an iteration */
	uint32_t dirty;			/* frame words that its instructions have used (gen_flow.c) */
	uint32_t *turns;		/* labels of the turn points, if turns are calls (gen_turn.c) */
	uint32_t nturns, resume;	/* resume: label of the code that jumps to one of them */
	size_t turns_cap;
	struct stub *stubs;
	uint32_t nstubs;
	size_t stubs_cap;

	uint32_t needs;			/* of all clauses: enum plan_need */
	bool settles;			/* each clause has a settled end, and they are counted */
	bool faults_in;			/* it reads user memory that may have to be faulted in first */
	const char *err;		/* the first thing that could not be generated */
};

typedef void gen_fn(struct gen *g, const struct ir_insn *i);

gen_fn gen_const, gen_strc, gen_mov, gen_alu, gen_divide, gen_unary, gen_ext, gen_compare, gen_strcmp;
gen_fn gen_jmp, gen_br, gen_ret, gen_raise, gen_builtin, gen_arg, gen_call, gen_load_mem;
gen_fn gen_turn, gen_budget, gen_spend, gen_pass, gen_enter, gen_leave, gen_try, gen_endtry, gen_raise_text, gen_caught;
gen_fn gen_caughtstr, gen_failed, gen_mclear, gen_stat, gen_extract, gen_sbucket;
gen_fn gen_match, gen_sprintf, gen_iter, gen_inext, gen_ikey, gen_ivalue, gen_idone;
gen_fn gen_vld, gen_vst, gen_vadd, gen_mld, gen_mst, gen_madd, gen_mhas, gen_mdel, gen_agg, gen_emit, gen_exiting, gen_gate;

/* Generators of functions (ir/funcs.def). */
gen_fn gen_make, gen_matched;							/* gen_str.c */
/* Fault if the address in R3 and FRAME_TMP2 is in the memory of clauses, but not in this clause's part. */
void gen_check_own(struct gen *g);
gen_fn gen_copyin, gen_alloca, gen_copy_into, gen_poke, gen_poke_string, gen_user_reg;	/* gen_copy.c: the clause's memory */
gen_fn gen_rand, gen_signal, gen_copyout, gen_copyoutstr, gen_poke_user, gen_progenyof;	/* gen_act.c: the process */
gen_fn gen_value;								/* gen_value.c */
gen_fn gen_stack, gen_frame, gen_task, gen_path, gen_register;				/* gen_stack.c, gen_task.c, gen_path.c, gen_ctx.c */

/* --- operands ---------------------------------------------------------------------------------------- */

/* The register that holds the integer @r: its own, or @tmp, into which it is loaded. */
int gen_use(struct gen *g, ir_reg r, int tmp);

/* Load the integer @r into @reg. */
void gen_load(struct gen *g, int reg, ir_reg r);

/* Is the integer @r a constant? */
bool gen_is_const(const struct gen *g, ir_reg r, int64_t *v);

/* The value of an operand that must be a constant (funcs.def); else the program is refused and it is 0. */
int64_t gen_constant(struct gen *g, ir_reg r);

/* Store @reg, the result of @i, in its destination. */
void gen_put(struct gen *g, const struct ir_insn *i, int reg);

/* Sign or zero extend the low @width bytes of @reg in place. */
void gen_extend(struct gen *g, int reg, unsigned int width, bool sign);

/* @reg = the scratch slot + @off. */
void gen_scratch(struct gen *g, int reg, uint32_t off);

/* Load an operand of either type; of a string its address. */
void gen_operand(struct gen *g, int reg, ir_reg r);

/* @reg = the address of string @r, which is not late. */
void gen_str(struct gen *g, int reg, ir_reg r);

/* --- faults and losses ------------------------------------------------------------------------------- */

/* The label to jump to for a fault of @kind; the frame's word @value_off must have its value at the jump. */
uint32_t gen_fault(struct gen *g, enum abi_fault kind, int value_off);

/* The end of stub @s, its value in R1, if its fault can be caught; false: it cannot. */
bool gen_catchable(struct gen *g, const struct stub *s);

/* Can user memory be faulted in here?  If so, the program becomes sleepable. */
bool gen_faults_in(struct gen *g);

/* Count a loss. Uses R1 and R2. */
void gen_drop(struct gen *g, enum abi_drop what);

/* Refuse the program because of @why; the first message is kept. */
void gen_refuse(struct gen *g, const char *why);

/* --- destinations of strings (gen_str.c) -------------------------------------------------------------------- */

/* Where to build a string: the scratch slot + off (+ the frame's FRAME_POS if @behind). */
struct dest {
	uint32_t off;
	bool behind;
};

/*
 * Put the string @r, late or not, at @to, where strsize bytes are free.  R0: its length with the NUL, 1 to
 * strsize, as the verifier knows too.
 */
void gen_str_to(struct gen *g, ir_reg r, struct dest to);

/* The same for the result of @i: copyinstr, stringof, a variable or a builtin. */
void gen_make_str(struct gen *g, const struct ir_insn *i, struct dest to);

/* The same for a variable (gen_var.c). */
void gen_make_var_str(struct gen *g, const struct ir_insn *i, struct dest to);

/* The buffer of the string that @i makes. */
struct dest gen_str_dst(struct gen *g, const struct ir_insn *i);

/* @reg = the address of @to.  Uses R0. */
void gen_dest(struct gen *g, int reg, struct dest to);

/*
 * Copy the string at R3 to R1, with room for strsize bytes; R0 as above.  An @untrusted address may fault; any
 * other is in a map.
 */
void gen_copy_str(struct gen *g, bool untrusted);

/* Before a clause: nothing has matched yet. */
void gen_match_begin(struct gen *g);

/* --- keys (gen_key.c) -------------------------------------------------------------------------------- */

/*
 * An operation with a key: @each generates it, once per key class (ir/layout.h), with the key in place; all of them
 * continue after gen_keyed.
 */
struct keyed_use {
	const struct keyed *keyed;
	const struct ir_slot *parts;
	const ir_reg *keys;
	uint32_t n;
	bool thread;			/* the thread is a hidden first integer */
	const struct ir_slot *value;	/* of an array */
	const struct ir_map *map;	/* if it is an ordered one, or NULL */
	enum abi_drop drop;		/* what is lost when there is no room */
	uint32_t other;			/* where @each jumps if there is no element */
	void (*each)(struct gen *g, const struct keyed_use *k, uint32_t map);
};

void gen_keyed(struct gen *g, const struct keyed_use *k);

/* R1 = the map, for a helper's call; R0 to R5 are used.  Jumps to @other if there is none, which does not happen. */
void gen_key_map(struct gen *g, const struct keyed_use *k, uint32_t map);

/* R2 = the key. */
void gen_key_addr(struct gen *g, const struct keyed_use *k);

/* For @each: R0 = the element; jump to @other if there is none. */
void gen_key_find(struct gen *g, const struct keyed_use *k, uint32_t map);

/* For @each: R0 = the element, created with zeros if there was none; jump to @other if there is no room. */
void gen_key_get(struct gen *g, const struct keyed_use *k, uint32_t map);

/* For @each: remove the element; jump to @other if there is none. */
void gen_key_delete(struct gen *g, const struct keyed_use *k, uint32_t map);

/* Call @fn for each element of @map, with the frame from @ctx on as its context. */
void gen_walk(struct gen *g, uint32_t map, enum rt_fn fn, int ctx);

/* Store the thread's key at FRAME_THREAD. */
void gen_thread_key(struct gen *g);

/* Where in the frame the numbers of gen_tp_other_task()'s thread are, those of the machine's own pid namespace. */
int gen_other_numbers(struct gen *g);

/* --- control flow (gen_flow.c) ------------------------------------------------------------------------ */

/* Before a clause; after it, the target of its LEAVEs; after its stubs, the code that catches faults. */
void gen_flow_begin(struct gen *g);
void gen_flow_returns(struct gen *g);
void gen_flow_catches(struct gen *g, uint32_t faulted);

/* At the start of block @b, which may be a procedure's first. */
void gen_procedure(struct gen *g, const struct ir_block *b);

/* After an instruction whose code begins at @from: zero the frame words that it used. */
void gen_tidy(struct gen *g, uint32_t from);

/* R8 = the frame of call number R1 (0: of the clause itself), which is in range. */
void gen_set_frame(struct gen *g);

/* Zero the words of the frame that instructions use, and R6 to R8. */
void gen_clear_frame(struct gen *g);

/* @reg = the address of the IR_FRAME variable @v, or (@next) its address in the call that is ENTERed next. */
void gen_frame_var(struct gen *g, int reg, const struct ir_var *v, bool next);

/* --- costs (gen_cost.c) ----------------------------------------------------------------------------------- */

/* Does the program sum up what it costs?  Then it reads the clock first of all, and gen_charge() is the last that it does. */
bool gen_charges(const struct gen *g);
void gen_charge(struct gen *g);

/* --- turns of loops (gen_turn.c) ---------------------------------------------------------------------- */

/* A word of the clause's state. */
static inline int gen_state(const struct gen *g, int word)
{
	return (int)g->priv->state_off + 8 * word;
}

/*
 * Every loop must contain one of these: continue, or jump to @over when the clause has been in its loops for too long.
 * Only R9, the program's values in the frame and (with NEED_CALLS) R8 are the same after it.
 */
void gen_turn_point(struct gen *g, uint32_t over);

/*
 * Time was up at the last turn point, where a fault is caught.  If turns are calls: end the clause, but the first time
 * continue after that point for some more turns, with the outermost TRY alone (if there is none: at @none); returns
 * true.
 */
bool gen_last_turns(struct gen *g, uint32_t none);

/* Keep the kernel from giving a program with loops a stack of its own; anywhere where R0 to R5 are free. */
void gen_own_stack(struct gen *g);

/* Is the clause of @plan a function of its own, called for each turn? */
bool gen_turns_called(const struct gen *g, const struct plan *plan);

/* In the program: call that function, which begins at @label.  Then its start and its end, around the clause. */
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
/* Does the program's own time have to be kept out of vtimestamp?  It needs NEED_TIME then, and these two. */
bool gen_hides_time(const struct gen *g);
void gen_hide_begin(struct gen *g);
void gen_hide_end(struct gen *g);
/* R0 = the table's entry of the probe that fired; jump to @none if there is none. */
void gen_probe_entry(struct gen *g, uint32_t none);
/* R1 = the argument at @o; jump to @unread if it is in memory that cannot be read, which is a fault if @unread is NULL. */
void gen_operand_value(struct gen *g, const struct ebpf_operand *o, const uint32_t *unread);
void gen_value_str(struct gen *g, const struct ir_insn *i, struct dest to);
void gen_make_builtin_str(struct gen *g, const struct ir_insn *i, struct dest to);

/* --- the interpreter's lock (gen_gil.c) --------------------------------------------------------------- */

enum { GIL_NEEDS = NEED_TIME | NEED_PROBE };

/* Jump to @out if the event is not for this program.  GIL_NEEDS are in place then. */
void gen_gil_filter(struct gen *g, uint32_t out);
/* When there is a scratch slot: keep the arguments.  R1 = argument @n. */
void gen_gil_keep(struct gen *g);
void gen_gil_arg(struct gen *g, int64_t n);

/* --- functions by name for programs in the kernel (gen_away.c) ------------------------------------------ */

/* Jump to @out if the event is not for this program.  NEED_PROBE is in place then. */
void gen_away_filter(struct gen *g, uint32_t out);
/* When there is a scratch slot: keep what values there are; if @names, FRAME_PROBE is the function's own. */
void gen_away_keep(struct gen *g, bool names);
/* Is @i a value that the agent gives? */
bool gen_is_given(const struct gen *g, const struct ir_insn *i);
/* The generators of such values, as gen_value() and gen_value_str(). */
void gen_given(struct gen *g, const struct ir_insn *i);
void gen_given_str(struct gen *g, const struct ir_insn *i, struct dest to);
/* After ABI_HELPER_VALUE, whose result is in R0: fault, or continue.  The object is at FRAME_TMP2. */
void gen_value_check(struct gen *g);

/* --- iterations (gen_iter.c) --------------------------------------------------------------------------- */

/* Before and after a clause with @plan; in the end its buffers are released. */
void gen_iters_begin(struct gen *g, const struct plan *plan);
void gen_iters_end(struct gen *g, const struct plan *plan);

/* FRAME_ELEM = the statistic of @m under the keys; an empty one faults. */
void gen_find_stat(struct gen *g, const struct ir_map *m, const ir_reg *keys);

/* --- tracepoints (gen_tp.c) --------------------------------------------------------------------------- */

/* Jump to @out if the event is not for this program; else FRAME_PROBE is set, for system calls. */
void gen_tp_filter(struct gen *g, uint32_t out);
/* R1 = argument @n. */
void gen_tp_arg(struct gen *g, int64_t n);
/* R1 = the error of the system call that returns, or 0. */
void gen_tp_errno(struct gen *g);
/*
 * Is the event about another thread than the running one?  Then gen_tp_task_at stores its numbers, those of the machine's own pid
 * namespace, at @to of the frame.
 */
bool gen_tp_other_task(const struct gen *g);
void gen_tp_task_at(struct gen *g, int to);
void gen_tp_task_addr(struct gen *g);	/* R1 = its struct task_struct */

/* R0 = the struct task_struct of the thread that the firing is about (gen_task.c). */
void gen_current_task(struct gen *g);

/*
 * In a pid namespace: is it known where the kernel keeps numbers?  Then, of the task whose struct task_struct is at R3: R3 = its
 * number @what (ABI_TASK_TID or ABI_TASK_PID) in the tracer's namespace, 0 if it is not in there; R3 = its parent.  Both use
 * FRAME_KEY, 8 bytes.
 */
bool gen_knows_numbers(const struct gen *g);
void gen_number_there(struct gen *g, enum abi_task what);
void gen_process_parent(struct gen *g);
/*
 * FRAME_TASK = the numbers of the running thread, or of that which the event is about, and of its process in the tracer's
 * namespace, 0 of what is not in there.
 */
void gen_current_numbers(struct gen *g);

/* FRAME_TASK = the numbers of the thread that runs, in the tracer's namespace; 0: it has none there. */
void gen_thread_numbers(struct gen *g);

/* R1 = its fact @what, a number; 0 if it cannot be read. */
void gen_task_id(struct gen *g, enum abi_task what);
/* That thread's command name into the 16 bytes at FRAME_KEY. */
void gen_tp_comm(struct gen *g);

/* --- stacks (gen_stack.c) ----------------------------------------------------------------------------- */

/* R1 = the pointer at offset @off of the kernel structure at R1; 0 when it cannot be read. */
void gen_follow(struct gen *g, uint32_t off);

/*
 * Append up to @frames Python frames to the record of a stack in the work area, of which FRAME_POS bytes are in use;
 * update FRAME_POS and the number in FRAME_TMP2.
 */
void gen_python(struct gen *g, uint32_t frames, bool lines);

/*
 * Put up to @frames addresses of the user stack into the work area, by the tables of abi/unwind.h, and jump to @done,
 * R0: their bytes; or continue here if the process is unknown.  Uses what gen_python uses.
 */
void gen_unwind(struct gen *g, uint32_t frames, uint32_t done);

/* Ask the tracer about the process. */
void gen_ask(struct gen *g);

/* R1 = the builtin: caller, ucaller, stackdepth or ustackdepth. */
void gen_stack_builtin(struct gen *g, enum ir_builtin bi);

/* FRAME_TMP2 = the number of this stack of the thread that runs, which is sent to the tracer if it is new. */
void gen_make_stack(struct gen *g, enum ir_stack whose, uint32_t frames);

/* --- stacks of the thread that gets the CPU (gen_kept.c) ------------------------------------------------- */

/* FRAME_TMP2 = the number of this stack as it was kept, and jump to @done; or continue here if it is not known. */
void gen_kept_stack(struct gen *g, enum ir_stack whose, uint32_t frames, uint32_t done);
/* At sched_switch: jump to @out unless the stacks of the running process are wanted; keep the running thread's. */
void gen_keep_filter(struct gen *g, uint32_t out);
void gen_keep(struct gen *g);

/* --- execargs (gen_exec.c) ---------------------------------------------------------------------------- */

/* The arguments of the process at @to, as gen_str_to; jump to @none if there are none. */
void gen_execargs(struct gen *g, struct dest to, uint32_t none);

/* Jump to @out in processes of another program than env->exe_ino's. */
void gen_exe_filter(struct gen *g, uint32_t out);
gen_fn gen_bias;

/* --- paths (gen_path.c) ------------------------------------------------------------------------------- */

/* The path of the process's root or current directory at @to; R0 as gen_str_to has it. */
void gen_directory(struct gen *g, bool root, struct dest to);

/* --- records (gen_rec.c) ------------------------------------------------------------------------------ */

/* Jump to @out if the session is over (ABI_STATE_DRAINING), which it is not while END fires. */
void gen_exit_check(struct gen *g, uint32_t out);

/* Fill in the header at @base + @off, except the size.  FRAME_TIME, FRAME_PROBE and FRAME_TASK are known. */
void gen_header(struct gen *g, int base, int off, uint32_t rec);

/* Output the record at @base + @off: @size bytes, or if that is 0 as many as the header and FRAME_POS say. */
void gen_output(struct gen *g, int base, int off, uint32_t size);

#endif
