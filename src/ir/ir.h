/*
 * The intermediate representation, which both languages are lowered to.
 *
 * A program is a list of clauses, the variables, maps, aggregations and record layouts that they share, and
 * what the tracer shall do with each record (the actions).  A clause is code: basic blocks of three-address
 * instructions over virtual registers, each register an integer of 64 bits or a string.  A register may be
 * assigned more than once (a conditional expression assigns it in both branches); it must be assigned on
 * every path to a use.  A string is never made from itself: the register of a string result is none of the operands'.
 * ops.def lists the instructions.
 *
 * No register is live at these points; values that are needed there are kept in variables (IR_LOCAL):
 *	- at the head of a loop: every cycle of blocks has a block that begins with TURN;
 *	- at the first block of a procedure and where its caller continues (ENTER);
 *	- where a fault is caught (TRY).
 *
 * A procedure is a set of blocks that ENTER calls and LEAVE returns from.  It belongs to one clause, may ENTER itself,
 * and has variables of which each call has its own copy (IR_FRAME).  A caller sets arguments there with PASS and
 * continues in the block that its ENTER names; a result is returned in an IR_LOCAL.  At most ir_prog.nesting calls may
 * be active at a time.
 *
 * TRY names the block to which a fault goes, until ENDTRY; they nest, and leaving a region other than by a fault
 * needs one ENDTRY per TRY left.  A fault removes the innermost TRY and unwinds to the call depth of that TRY;
 * CAUGHT and CAUGHTSTR then describe the fault.
 *
 * The code that processes the IR does not know which language a program came from, and nothing in the IR depends on
 * eBPF.
 *
 * A string register holds a string of at most strsize - 1 bytes.  Strings made by CALL, VLD, MLD, STRC and
 * BUILTIN are values: a later store to a variable does not change them.
 *
 * A clause that faults (ops.def, funcs.def: division by zero, a bad address) ends there; what it stored
 * stays, a record not yet EMITted is never written, and the program's ERROR clauses run with arg1
 * the probe's id, arg2 the clause's id, arg3 the BPF instruction's number, arg4 the enum abi_fault, arg5 its value
 * (DTrace guide, "dtrace Provider").
 *
 * All of it lives in one arena.
 */
#ifndef DTAP_IR_IR_H
#define DTAP_IR_IR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lang/desc.h"
#include "lang/source.h"

struct arena;
struct dialect;
struct strbuf;

enum ir_type { IR_VOID = '-', IR_INT = 'i', IR_STR = 's' };

enum ir_op {
#define IR_OP(NAME, ...) IR_##NAME,
#include "ir/ops.def"
#undef IR_OP
	IR_OP_MAX
};

enum ir_builtin {
#define IR_BUILTIN(NAME, ...) IR_B_##NAME,
#include "ir/builtins.def"
#undef IR_BUILTIN
	IR_B_MAX
};

enum ir_fn {
#define IR_FN(NAME, ...) IR_FN_##NAME,
#include "ir/funcs.def"
#undef IR_FN
	IR_FN_MAX
};

enum ir_agg_fn {
#define IR_AGG(NAME, ...) IR_A_##NAME,
#include "ir/aggs.def"
#undef IR_AGG
	IR_A_NR
};

typedef uint32_t ir_reg;	/* a virtual register's number in its clause */
enum { IR_NO_REG = 0xffffffff };

enum { IR_MAX_KEYS = 32, IR_MAX_FIELDS = 1024, IR_MAX_NESTING = 1000, IR_NESTING = 10, IR_MAX_TRIES = 32 };
enum { IR_STRTOL_LOOSE = 256 };	/* beside the base of IR_FN_STRTOL */
enum { IR_STRSIZE_MIN = 2, IR_STRSIZE_MAX = 64 << 10 };

/* Where a variable or an associative array lives. */
enum ir_class {
	IR_GLOBAL,	/* one for the session */
	IR_THREAD,	/* self->: one for each thread; an integer 0 or "" stored frees it */
	IR_CLAUSE,	/* this->: one for each firing, shared by its clauses, 0 at its start */
	IR_LOCAL,	/* one for each firing; undefined until it is stored to */
	IR_FRAME,	/* the same for each call of a procedure, and one for the clause outside of all calls */
};

/* The frames in a stack. */
enum ir_stack {
	IR_STACK_KERNEL,
	IR_STACK_USER,
	IR_STACK_PYTHON,	/* Python functions only */
	IR_STACK_MIXED,		/* the user's, with Python frames after the native frames that run them */
	IR_STACK_FUNCTIONS,	/* as IR_STACK_PYTHON, but without the position inside each function */
	IR_STACK_INSTRUCTIONS,	/* as IR_STACK_PYTHON, and shown with the instruction, not only its line */
};

/* How a value is shown.  A number may be the id of a list of addresses (ABI_REC_STACK). */
enum ir_show {
	IR_SHOW_NUMBER,		/* as a plain number */
	IR_SHOW_STACK,		/* one line per frame */
	IR_SHOW_ADDR,		/* module`function+offset */
	IR_SHOW_SYM,		/* module`function */
	IR_SHOW_MOD,		/* module */
	IR_SHOW_FLOAT,		/* the bits of a float or double */
	/* of a stack: */
	IR_SHOW_FRAMES_FULL,	/* lines " 0x1234 : function+0x1/0x10 [path]" */
	IR_SHOW_FRAMES_SOURCE,	/* lines " 0x1234 : function+0x1/0x10 at source:line [path]" */
	IR_SHOW_FRAMES_FILE,	/* lines "function+0x1 [file]" */
	IR_SHOW_FRAMES_BRIEF,	/* lines "function+0x1" */
	IR_SHOW_ADDRS_EACH,	/* "0x1234 0x5678 " */
	IR_SHOW_ADDRS,		/* "0x1234 0x5678" */
	/* and of its first frame: */
	IR_SHOW_FUNC,		/* function */
	IR_SHOW_FUNC_SIZE,	/* function+0x1/0x10 [path] */
	IR_SHOW_PATH,		/* path */
	IR_SHOW_SOURCE,		/* source, or "0x1234" */
	IR_SHOW_LINE,		/* line */
	IR_SHOW_SOURCE_LINE,	/* source:line */
	/* of a string: in quotes, with escapes, cut as by IR_FN_ESCAPE; nothing, if the value before it is an address */
	IR_SHOW_QUOTED,
	/* of a plain number, before such a string: the address that could not be read, or IR_READABLE */
	IR_SHOW_INSTEAD,
	/* of a plain number: */
	IR_SHOW_WORDS = 64,	/* + WORDS_X: in words (lang/words.def) */
};

/*
 * In a string: IR_MARK, the hexadecimal numbers of an enum ir_show and of a list of addresses with a comma between,
 * IR_MARK_END stand for that text.  IR_MARK_AS, a hexadecimal enum ir_show, IR_MARK_AS before a mark say how it is shown
 * instead.
 */
#define IR_MARK "\001"
#define IR_MARK_END "\002"
#define IR_MARK_AS "\003"

/* No memory is at this address, which is not canonical, and nobody passes it. */
#define IR_READABLE INT64_C(-0x70c2a3f164e58dba)

/* A value's type in memory: an integer of 1, 2, 4 or 8 bytes, or a string in ir_str_room() bytes. */
struct ir_slot {
	enum ir_type type;
	uint8_t width;		/* bytes, integers only */
	bool sign;		/* integers only */
	uint8_t show;		/* enum ir_show */
};

struct ir_var {
	uint32_t id;		/* index in ir_prog.vars */
	const char *name;
	enum ir_class cls;
	struct ir_slot slot;
};

/*
 * An array's elements may be statistics: STAT adds a value, SCOUNT and others read.  A statistic keeps count and sum,
 * and more on request.  An array without keys is a single statistic.  Buckets are SystemTap's (language reference,
 * "Histogram extractors").
 */
enum ir_stat { IR_STAT_NONE, IR_STAT_PLAIN, IR_STAT_LOG, IR_STAT_LINEAR };

struct ir_map {
	uint32_t id;		/* index in ir_prog.maps */
	const char *name;
	enum ir_class cls;	/* IR_GLOBAL, or IR_THREAD: then the thread is a hidden first key */
	struct ir_slot keys[IR_MAX_KEYS];
	uint32_t nkeys;
	struct ir_slot value;	/* not of statistics */
	enum ir_stat stat;
	uint8_t shift;		/* statistics: additional bits of precision of SVARIANCE, 0 to 62 */
	bool extremes, squares;	/* statistics: keeps what SMIN and SMAX need; what SVARIANCE needs */
	int64_t linear[3];	/* IR_STAT_LINEAR: low, high, width */
	bool zero_frees;	/* storing 0 or "" removes the element (D) */
	bool ordered;		/* keeps insertion order; inserting into a full map is a fault (SystemTap) */
	bool wraps;		/* ordered: inserting into a full map removes the oldest element instead */
	uint32_t max_entries;	/* 0: from the session's dynvarsize; ordered: not 0 */
};

/* What an iteration is sorted by.  The sort is stable. */
enum ir_sort {
	IR_SORT_NONE,		/* insertion order */
	IR_SORT_KEY,		/* part @column of the key */
	IR_SORT_VALUE,
	IR_SORT_COUNT, IR_SORT_SUM, IR_SORT_MIN, IR_SORT_MAX, IR_SORT_AVG, IR_SORT_VARIANCE,
	IR_SORT_NR
};

/*
 * An iteration over an ordered map.  Like an IR_LOCAL, its state exists once per firing: an iteration that has not
 * ended must not be started again (in a procedure that calls itself).
 */
struct ir_iter {
	uint32_t id;		/* index in ir_prog.iters */
	struct ir_map *map;
	enum ir_sort sort;
	uint32_t column;
	bool down;		/* the largest first */
	uint32_t given;		/* bit n: only elements whose key part n equals an operand of ITER */
};

struct ir_agg {
	uint32_t id;		/* index in ir_prog.aggs; D's order of first mention */
	const char *name;	/* without the @; "" for D's @[...] */
	enum ir_agg_fn fn;
	struct ir_slot keys[IR_MAX_KEYS];
	uint32_t nkeys;
	int64_t param[4];	/* lquantize: base, limit, step; llquantize: factor, low, high, steps */
	bool sign;		/* the aggregated expression is signed */
	struct src_pos pos;
};

/* What the tracer does when it gets a record.  One row each: actions.def. */
enum ir_act_kind {
#define IR_ACT(NAME, ...) IR_ACT_##NAME,
#include "ir/actions.def"
#undef IR_ACT
	IR_ACT_MAX
};

struct ir_act {
	enum ir_act_kind kind;
	uint32_t field, nfields;	/* its fields of the record: first, count */
	const struct fmt *fmt;		/* PRINTF, PRINTA: the parsed format (lang/format.h), or NULL for the default */
	struct ir_agg **aggs;		/* PRINTA, CLEAR, TRUNC, NORMALIZE, DENORMALIZE */
	uint32_t naggs;
	struct src_pos pos;
};

/* A record's layout and its actions. */
struct ir_rec {
	uint32_t id;			/* index in ir_prog.recs */
	uint32_t clause;		/* ir_clause's id */
	struct ir_map *stat;		/* NULL, or: a statistic of this map follows; EMIT has its keys last */
	struct ir_slot *fields;
	uint32_t nfields;
	size_t fields_cap;
	struct ir_act *acts;
	uint32_t nacts;
	size_t acts_cap;
};

struct ir_block;

struct ir_insn {
	enum ir_op op;
	uint8_t width;			/* EXT, LOAD, ULOAD, UPEEK */
	bool sign;
	uint32_t part;			/* IKEY */
	ir_reg dst;			/* or IR_NO_REG */
	ir_reg *args;
	uint32_t nargs;
	union {
		int64_t imm;
		const char *str;
		enum ir_builtin bi;
		enum ir_fn fn;
		struct ir_var *var;
		struct ir_map *map;
		struct ir_agg *agg;
		struct ir_rec *rec;
		struct ir_iter *iter;
		const struct fmt *fmt;
		struct ir_block *target[2];
	};
	uint32_t act;			/* number of the action that it belongs to, from 1; 0: the predicate */
	struct src_pos pos;
};

struct ir_block {
	uint32_t id;			/* index in ir_clause.blocks; 0 is where the clause starts */
	struct ir_insn *insns;		/* only the last one is an instruction that ends a block */
	uint32_t n;
	size_t cap;
};

/* When a clause runs. */
enum ir_runs {
	IR_EVENT,	/* whenever one of its probes fires, on several CPUs at a time */
	IR_TRACER,	/* in the tracer, one at a time */
	IR_ALONE,	/* when no other clause runs */
};

struct ir_clause {
	uint32_t id;			/* index in ir_prog.clauses */
	enum ir_runs runs;
	struct probe_desc *descs;	/* its probes */
	uint32_t ndescs;
	struct src_pos pos;
	struct ir_block **blocks;
	uint32_t nblocks;
	size_t blocks_cap;
	enum ir_type *regs;		/* type by register */
	uint32_t nregs;
	size_t regs_cap;
};

/*
 * The position in the message of a fault, by its number (IR_ACT_ERROR): "division by 0 near operator '/' at FILE:3:7".
 * If @what is empty, the message has no position.  The message is @text with the fault's value, or if @text is NULL
 * the language's message for the fault.
 */
struct ir_near {
	const char *what, *text;
	struct src_pos pos;
};

struct ir_prog {
	struct arena *arena;
	const struct dialect *dialect;	/* how the language formats output (out/dialect.h); NULL: D's */
	struct ir_near *nears;
	uint32_t nnears;
	uint32_t strsize;		/* bytes of the largest string with its NUL, IR_STRSIZE_MIN to IR_STRSIZE_MAX */
	uint32_t nesting;		/* maximal depth of calls, 1 to IR_MAX_NESTING */
	bool exclusive;			/* a clause locks the IR_GLOBALs that it uses and that other clauses write */
	uint64_t lock_wait_ns;		/* if a lock is not free after this time, the clause is skipped */
	struct ir_var **vars;
	struct ir_map **maps;
	struct ir_iter **iters;
	struct ir_agg **aggs;
	struct ir_rec **recs;
	struct ir_clause **clauses;
	uint32_t nvars, nmaps, niters, naggs, nrecs, nclauses;
	size_t vars_cap, maps_cap, iters_cap, aggs_cap, recs_cap, clauses_cap;
};

/* --- building (build.c) ------------------------------------------------------------------------------ */

/* An empty program in @a; everything added to it is allocated there.  @strsize: see struct ir_prog. */
struct ir_prog *ir_prog_new(struct arena *a, uint32_t strsize);

/* Bytes of a string in memory: strsize rounded up to whole words. */
static inline uint32_t ir_str_room(const struct ir_prog *p)
{
	return (p->strsize + 7) & ~7u;
}

/* New objects of @p, numbered in the order of creation; names are copied. */
struct ir_var *ir_var_new(struct ir_prog *p, const char *name, enum ir_class cls, struct ir_slot slot);
struct ir_map *ir_map_new(struct ir_prog *p, const char *name, enum ir_class cls);	/* caller fills the rest */
struct ir_iter *ir_iter_new(struct ir_prog *p, struct ir_map *m);			/* the same */
struct ir_agg *ir_agg_new(struct ir_prog *p, const char *name, enum ir_agg_fn fn);	/* caller fills the rest */
struct ir_clause *ir_clause_new(struct ir_prog *p, struct src_pos pos);
struct ir_rec *ir_rec_new(struct ir_prog *p, struct ir_clause *c);

/* Add a field to a record: its number. */
uint32_t ir_rec_field(struct ir_prog *p, struct ir_rec *r, struct ir_slot slot);

/* Add an action over the next @nfields fields, which the caller adds after this call. */
struct ir_act *ir_rec_act(struct ir_prog *p, struct ir_rec *r, enum ir_act_kind kind, struct src_pos pos);

/*
 * A builder appends to one block of one clause.  ir_build starts in a new clause's block 0.  After an
 * instruction that ends a block, call ir_at with a new one before adding more.
 */
struct ir_build {
	struct ir_prog *prog;
	struct ir_clause *clause;
	struct ir_block *block;
	struct src_pos pos;		/* this and act are set in each instruction added */
	uint32_t act;
};

void ir_build(struct ir_build *b, struct ir_prog *p, struct ir_clause *c);
struct ir_block *ir_block_new(struct ir_build *b);	/* empty; the builder stays where it is */
void ir_at(struct ir_build *b, struct ir_block *block);
ir_reg ir_reg_new(struct ir_build *b, enum ir_type type);	/* to be assigned by ir_mov */

/* Add one instruction each (ops.def); return the register of its result, if it has one. */
ir_reg ir_const(struct ir_build *b, int64_t v);
ir_reg ir_strc(struct ir_build *b, const char *s);
void ir_mov(struct ir_build *b, ir_reg dst, ir_reg src);
ir_reg ir_op1(struct ir_build *b, enum ir_op op, ir_reg a);			/* NEG, NOT */
ir_reg ir_op2(struct ir_build *b, enum ir_op op, ir_reg x, ir_reg y);		/* ADD ... STRCMP */
ir_reg ir_ext(struct ir_build *b, ir_reg a, unsigned int width, bool sign);	/* @a itself for width 8 */
ir_reg ir_load(struct ir_build *b, enum ir_op op, ir_reg addr, unsigned int width, bool sign);
ir_reg ir_builtin(struct ir_build *b, enum ir_builtin bi);
ir_reg ir_arg(struct ir_build *b, unsigned int n);
ir_reg ir_call(struct ir_build *b, enum ir_fn fn, const ir_reg *args, unsigned int n);
ir_reg ir_vld(struct ir_build *b, struct ir_var *v);
void ir_vst(struct ir_build *b, struct ir_var *v, ir_reg val);
ir_reg ir_vadd(struct ir_build *b, struct ir_var *v, ir_reg val);
ir_reg ir_mld(struct ir_build *b, struct ir_map *m, const ir_reg *keys);
void ir_mst(struct ir_build *b, struct ir_map *m, ir_reg val, const ir_reg *keys);
ir_reg ir_madd(struct ir_build *b, struct ir_map *m, ir_reg val, const ir_reg *keys);
ir_reg ir_mhas(struct ir_build *b, struct ir_map *m, const ir_reg *keys);
void ir_mdel(struct ir_build *b, struct ir_map *m, const ir_reg *keys);
void ir_mclear(struct ir_build *b, struct ir_map *m);
void ir_stat(struct ir_build *b, struct ir_map *m, ir_reg val, const ir_reg *keys);
ir_reg ir_extract(struct ir_build *b, enum ir_op op, struct ir_map *m, const ir_reg *keys);	/* SCOUNT ... */
ir_reg ir_bucket(struct ir_build *b, struct ir_map *m, ir_reg n, const ir_reg *keys);
/* @given: the key parts of @it->given, in order. */
ir_reg ir_iter(struct ir_build *b, struct ir_iter *it, ir_reg limit, const ir_reg *given);
ir_reg ir_inext(struct ir_build *b, struct ir_iter *it);
ir_reg ir_ikey(struct ir_build *b, struct ir_iter *it, unsigned int part);
ir_reg ir_ivalue(struct ir_build *b, struct ir_iter *it);
void ir_idone(struct ir_build *b, struct ir_iter *it);
ir_reg ir_match(struct ir_build *b, const char *regex, ir_reg s);
/* @args: the conversions' arguments, fmt_nargs of them. */
ir_reg ir_sprintf(struct ir_build *b, const struct fmt *f, const ir_reg *args);
/* @args: the function's values (aggs.def), then the keys. */
void ir_agg_add(struct ir_build *b, struct ir_agg *g, const ir_reg *args);
/* @args: one register per field, then the keys of the statistic. */
void ir_emit(struct ir_build *b, struct ir_rec *r, const ir_reg *args);
/* @others_too: the remaining clauses of this firing do not run, except END's and ERROR's. */
void ir_exiting(struct ir_build *b, bool others_too);
void ir_gate(struct ir_build *b);
void ir_jmp(struct ir_build *b, struct ir_block *to);
void ir_br(struct ir_build *b, ir_reg cond, struct ir_block *yes, struct ir_block *no);
void ir_ret(struct ir_build *b);
void ir_fault(struct ir_build *b, int kind, ir_reg value);
void ir_turn(struct ir_build *b);
void ir_pass(struct ir_build *b, struct ir_var *v, ir_reg val);
void ir_enter(struct ir_build *b, struct ir_block *procedure, struct ir_block *then);
void ir_leave(struct ir_build *b);
void ir_try(struct ir_build *b, struct ir_block *caught, struct ir_block *body);
void ir_endtry(struct ir_build *b);
enum { IR_CAUGHT_KIND, IR_CAUGHT_VALUE, IR_CAUGHT_ACT };	/* enum abi_fault, its value, the instruction's act */
ir_reg ir_caught(struct ir_build *b, int what);
ir_reg ir_caughtstr(struct ir_build *b);
void ir_raise(struct ir_build *b, ir_reg text);
void ir_budget(struct ir_build *b, int64_t n);
void ir_spend(struct ir_build *b, int64_t n);
ir_reg ir_failed(struct ir_build *b);

/* --- facts (facts.c; more in facts.h) ---------------------------------------------------------------- */

/* Columns of ops.def, builtins.def, funcs.def, aggs.def and actions.def. */
const char *ir_op_text(enum ir_op op);
const char *ir_builtin_text(enum ir_builtin bi);
enum ir_type ir_builtin_type(enum ir_builtin bi);
const char *ir_fn_text(enum ir_fn fn);
enum ir_type ir_fn_result(enum ir_fn fn);
const char *ir_agg_text(enum ir_agg_fn fn);
unsigned int ir_agg_operands(enum ir_agg_fn fn);
const char *ir_act_text(enum ir_act_kind kind);

/* Is it carried out only for records from the tracer's own trust domain (actions.def)? */
bool ir_act_is_own(enum ir_act_kind kind);

/* 64-bit words of an element of the statistics @m (abi/stat.h). */
uint32_t ir_stat_words(const struct ir_map *m);

/*
 * 64-bit words of an aggregated value (aggs.def); for lquantize and llquantize the number of buckets, including
 * the two open ends.  0 when the parameters are impossible (more than 4096 buckets, step 0 ...).
 */
uint32_t ir_agg_words(const struct ir_agg *g);
/*
 * Does an element have an additional word that is not 0 once a value was added?  Elements without keys always exist,
 * and a sum of 0 does not tell whether they were used.
 */
bool ir_agg_tells_use(const struct ir_agg *g);

/* llquantize: the bucket of @v; the lowest value of bucket @i (INT64_MIN for the first); its value nearest to zero. */
uint32_t ir_llquantize_bucket(const struct ir_agg *g, int64_t v);
int64_t ir_llquantize_bound(const struct ir_agg *g, uint32_t i);
int64_t ir_llquantize_label(const struct ir_agg *g, uint32_t i);

/* --- text and checking (print.c, read.c, check.c) ---------------------------------------------------- */

/* The program as text that ir_read can read: the form of tests/ir and of -x ir. */
void ir_print(const struct ir_prog *p, struct strbuf *out);

/* Read a program from text.  NULL on failure, with a message in the arena at *err ("line 3: ..."). */
struct ir_prog *ir_read(struct arena *a, const char *text, const char **err);

/*
 * Is the program well formed: operand counts and types as in ops.def, one terminator per block, registers assigned on
 * every path to a use, fields matching EMIT?  NULL, or what is wrong, in the program's arena.  Run after
 * each lowering in debug builds: a failure is a bug in dtap, never a mistake in the script.
 */
const char *ir_check(const struct ir_prog *p);

#endif
