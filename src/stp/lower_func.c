/*
 * The builtin functions of functions.def, except those that read memory (lower_mem.c).
 *
 * SystemTap tapset reference.  Facts about a handler's probe point are constants.
 */
#include "stp/lower_func.h"

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "stp/lower.h"

enum { NS_PER_S = 1000000000 };

/* --- the handler ------------------------------------------------------------------------------------- */

ir_reg stp_func_pp(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return stp_lower_str(l, l->clause->pp);
}

ir_reg stp_func_pn(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct strbuf b = {0};
	struct stp_point bare = *l->handler->written;
	const char *text;

	(void)call;
	(void)args;
	bare.optional = bare.sufficient = false;
	bare.cond = NULL;
	stp_dump_point(&b, &bare);
	text = arena_strdup(l->arena, strbuf_str(&b));
	strbuf_fini(&b);
	return stp_lower_str(l, text);
}

bool stp_lower_in_kernel(const struct lower *l)
{
	return !strcmp(l->handler->point->comps[0].name, "kernel");
}

static const char *comp_text(const struct lower *l, const char *name)
{
	const struct stp_point *p = l->handler->point;

	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->comps[i].name, name) && p->comps[i].arg && p->comps[i].arg->kind == STP_STR)
			return p->comps[i].arg->str;
	return NULL;
}

/* "f" of function("f@file.c:3"), statement(...), or what function("caller").callee("f@file.c:3") is about. */
static const char *point_func(struct lower *l)
{
	const char *s = comp_text(l, "callee");

	if (!s)
		s = comp_text(l, "function");

	if (!s)
		s = comp_text(l, "statement");
	return s ? arena_strndup(l->arena, s, strcspn(s, "@")) : NULL;
}

/* Does the point have a pattern of functions, so that only the event knows which one it is? */
static bool is_met(const struct lower *l)
{
	return l->handler->kind == STP_P_PYTHON_CALL || l->handler->kind == STP_P_PYTHON_RETURN;
}

ir_reg stp_func_ppfunc(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = point_func(l);

	(void)call;
	(void)args;
	return is_met(l) ? ir_builtin(&l->b, IR_B_PROBEFUNC) : stp_lower_str(l, s ? s : "");
}

ir_reg stp_func_probefunc(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = point_func(l);

	(void)call;
	(void)args;
	return s && !is_met(l) ? stp_lower_str(l, s) : ir_builtin(&l->b, IR_B_PROBEFUNC);
}

ir_reg stp_func_probemod(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = comp_text(l, "library");

	(void)call;
	(void)args;
	if (!s)
		s = comp_text(l, "process");
	return s ? stp_lower_str(l, s) : ir_builtin(&l->b, IR_B_PROBEMOD);
}

/* The names of SystemTap's enum stp_probe_type in its context tapset. */
ir_reg stp_func_probe_type(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	static const char *const names[] = {
		[STP_P_BEGIN] = "begin", [STP_P_END] = "end", [STP_P_ERROR] = "error", [STP_P_NEVER] = "never",
		[STP_P_TIMER_S] = "timer", [STP_P_TIMER_MS] = "timer", [STP_P_TIMER_US] = "hrtimer",
		[STP_P_TIMER_NS] = "hrtimer", [STP_P_TIMER_HZ] = "hrtimer", [STP_P_TIMER_JIFFIES] = "timer",
		[STP_P_TIMER_PROFILE] = "profile_timer", [STP_P_PROCESS_BEGIN] = "utrace",
		[STP_P_PROCESS_END] = "utrace", [STP_P_THREAD_BEGIN] = "utrace", [STP_P_THREAD_END] = "utrace",
		[STP_P_SYSCALL_ENTRY] = "utrace_syscall", [STP_P_SYSCALL_RETURN] = "utrace_syscall",
		[STP_P_MARK] = "uprobe", [STP_P_FUNCTION] = "uprobe", [STP_P_INLINE] = "uprobe",
		[STP_P_RETURN] = "uretprobe", [STP_P_CALLEE] = "uprobe", [STP_P_STATEMENT] = "uprobe",
		[STP_P_PLT] = "uprobe", [STP_P_PLT_RETURN] = "uretprobe",
		[STP_P_PYTHON_CALL] = "python", [STP_P_PYTHON_RETURN] = "python", [STP_P_TRACEPOINT] = "tracepoint",
		[STP_P_KERNEL] = "kprobe", [STP_P_PERF] = "perf", [STP_P_DATA] = "hwbkpt", [STP_P_PROCFS] = "procfs", [STP_P_INPUT] = "input",
	};

	(void)call;
	(void)args;
	return stp_lower_str(l, names[l->handler->kind]);
}

ir_reg stp_func_is_return(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	int kind = l->handler->kind;

	(void)call;
	(void)args;
	return stp_lower_const(l, kind == STP_P_RETURN || kind == STP_P_PLT_RETURN || kind == STP_P_SYSCALL_RETURN ||
			    kind == STP_P_PYTHON_RETURN);
}

/* dtap makes no kernel module; SystemTap's name would have had the number of the process. */
ir_reg stp_func_module_name(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return stp_lower_str(l, arena_printf(l->arena, "stap_%d", (int)stp_env_of(l->stp)->pid));
}

ir_reg stp_func_stp_pid(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return stp_lower_const(l, stp_env_of(l->stp)->pid);
}

/* A function's result, if it is a number, is argument 1 of the probe at its return (arch.h, call_result). */
ir_reg stp_func_returnval(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	if (l->handler->kind == STP_P_SYSCALL_RETURN)	/* after the C library's value, or the call's number */
		return ir_arg(&l->b, stp_lower_in_kernel(l) ? 2 : 1);
	if (l->handler->kind != STP_P_RETURN && l->handler->kind != STP_P_PLT_RETURN) {
		stp_lower_refuse(l, call, "it is known in a probe of a function's, or system call's, .return",
				 "there is no returned value");
		return stp_lower_const(l, 0);
	}
	return ir_arg(&l->b, 1);
}

/* The label of .label("x"). */
ir_reg stp_func_pnlabel(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = comp_text(l, "label");

	(void)call;
	(void)args;
	return stp_lower_str(l, s ? s : "");
}

ir_reg stp_func_remote_uri(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return stp_lower_str(l, "");
}

ir_reg stp_func_registers_valid(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	int kind = l->handler->kind;

	(void)call;
	(void)args;
	return stp_lower_const(l, kind == STP_P_MARK || kind == STP_P_FUNCTION || kind == STP_P_INLINE || kind == STP_P_RETURN ||
			    kind == STP_P_STATEMENT || kind == STP_P_PLT || kind == STP_P_PLT_RETURN);
}

/* Does the process belong to the user who runs the script? */
ir_reg stp_func_is_myproc(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return ir_op2(&l->b, IR_EQ, ir_builtin(&l->b, IR_B_UID), stp_lower_const(l, stp_env_of(l->stp)->uid));
}

ir_reg stp_func_page_size(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return stp_lower_const(l, stp_env_of(l->stp)->page_size);
}

/* Are ids those of a pid namespace, not of the whole machine? */
ir_reg stp_func_in_pid_ns(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return stp_lower_const(l, stp_env_of(l->stp)->in_pid_ns);
}

/* No effect: the location of a function's arguments does not depend on it. */
ir_reg stp_func_nothing(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)l;
	(void)call;
	(void)args;
	return IR_NO_REG;
}

ir_reg stp_func_number(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return stp_lower_const(l, (int)call->builtin->number);
}

/* --- time -------------------------------------------------------------------------------------------- */

static ir_reg scaled(struct lower *l, struct stp_node *call, enum ir_builtin clock)
{
	ir_reg ns = ir_builtin(&l->b, clock);

	return call->builtin->number == 1 ? ns : ir_op2(&l->b, IR_UDIV, ns, stp_lower_const(l, call->builtin->number));
}

ir_reg stp_func_hz(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return stp_lower_const(l, stp_env_of(l->stp)->hz);
}

ir_reg stp_func_jiffies(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return ir_op2(&l->b, IR_UDIV, ir_builtin(&l->b, IR_B_TIMESTAMP), stp_lower_const(l, 1000000000 / stp_env_of(l->stp)->hz));
}

ir_reg stp_func_wall(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return scaled(l, call, IR_B_WALLTIMESTAMP);
}

ir_reg stp_func_monotonic(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return scaled(l, call, IR_B_TIMESTAMP);
}

/* 0 is CLOCK_REALTIME; all others are treated as CLOCK_MONOTONIC. */
ir_reg stp_func_clock_gettime(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_block *wall = ir_block_new(&l->b), *mono = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	ir_reg r = ir_reg_new(&l->b, IR_INT);

	(void)call;
	ir_br(&l->b, args[0], mono, wall);
	ir_at(&l->b, wall);
	ir_mov(&l->b, r, ir_builtin(&l->b, IR_B_WALLTIMESTAMP));
	ir_jmp(&l->b, end);
	ir_at(&l->b, mono);
	ir_mov(&l->b, r, ir_builtin(&l->b, IR_B_TIMESTAMP));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return r;
}

/* --- strings ----------------------------------------------------------------------------------------- */

static ir_reg byte_at(struct lower *l, ir_reg s, ir_reg pos)
{
	ir_reg args[2] = { s, pos };

	return ir_call(&l->b, IR_FN_BYTEAT, args, 2);
}

ir_reg stp_func_isdigit(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg c = byte_at(l, args[0], stp_lower_const(l, 0));

	(void)call;
	return ir_op2(&l->b, IR_ULT, ir_op2(&l->b, IR_SUB, c, stp_lower_const(l, '0')), stp_lower_const(l, 10));
}

static ir_reg index_of(struct lower *l, const ir_reg *args)
{
	ir_reg all[3] = { args[0], args[1], stp_lower_const(l, 0) };

	return ir_call(&l->b, IR_FN_INDEX, all, 3);
}

ir_reg stp_func_isinstr(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return ir_op2(&l->b, IR_SLE, stp_lower_const(l, 0), index_of(l, args));
}

ir_reg stp_func_strpos(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return index_of(l, args);
}

/* A byte as C's char, which is signed on x86-64. */
ir_reg stp_func_stringat(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_block *in = ir_block_new(&l->b), *out = ir_block_new(&l->b);

	(void)call;
	ir_br(&l->b, ir_op2(&l->b, IR_ULT, args[1], ir_call(&l->b, IR_FN_STRLEN, args, 1)), in, out);
	ir_at(&l->b, out);
	ir_raise(&l->b, stp_lower_str(l, "Position out of bounds"));
	ir_at(&l->b, in);
	return ir_ext(&l->b, byte_at(l, args[0], args[1]), 1, true);
}

static ir_reg escape(struct lower *l, ir_reg s, bool quoted)
{
	ir_reg args[2] = { s, stp_lower_const(l, quoted) };

	return ir_call(&l->b, IR_FN_ESCAPE, args, 2);
}

ir_reg stp_func_text_str(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return escape(l, args[0], false);
}

ir_reg stp_func_string_quoted(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return escape(l, args[0], true);
}

/* text_strn(string, length, quoted): length limits the result's bytes; 0 or less: no limit. */
ir_reg stp_func_text_strn(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg twice = ir_op2(&l->b, IR_SHL, args[1], stp_lower_const(l, 1));
	ir_reg quoted = ir_op2(&l->b, IR_NE, args[2], stp_lower_const(l, 0));
	ir_reg how[2] = { args[0], ir_op2(&l->b, IR_OR, twice, quoted) };

	(void)call;
	return ir_call(&l->b, IR_FN_ESCAPE, how, 2);
}

/* tokenize(string, delimiters) begins; tokenize(delimiters), or an empty string, continues. */
ir_reg stp_func_tokenize(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg both[2], r;

	if (call->nargs == 2) {
		struct ir_block *begin = ir_block_new(&l->b), *on = ir_block_new(&l->b);

		ir_br(&l->b, ir_call(&l->b, IR_FN_STRLEN, args, 1), begin, on);
		ir_at(&l->b, begin);
		ir_vst(&l->b, l->tokens, args[0]);
		ir_jmp(&l->b, on);
		ir_at(&l->b, on);
	}
	both[0] = ir_vld(&l->b, l->tokens);
	both[1] = args[call->nargs - 1];
	r = ir_call(&l->b, IR_FN_TOKEN, both, 2);
	ir_vst(&l->b, l->tokens, ir_call(&l->b, IR_FN_UNTOKEN, both, 2));
	return r;
}

/* --- output and the session -------------------------------------------------------------------------- */

ir_reg stp_func_exit(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg status = stp_lower_const(l, 0);

	(void)args;
	stp_lower_record(l, IR_ACT_EXIT, NULL, &status, 1, call->pos);
	ir_exiting(&l->b, false);
	return IR_NO_REG;
}

/* After an instruction that ends a block: a block for the unreachable code that follows. */
static ir_reg unreached(struct lower *l)
{
	ir_at(&l->b, ir_block_new(&l->b));
	return IR_NO_REG;
}

ir_reg stp_func_abort(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	stp_func_exit(l, call, args);
	ir_ret(&l->b);
	return unreached(l);
}

/* Its message names the call of the function around it.  Man page error::reporting(7stap). */
ir_reg stp_func_error(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const struct stp_node *site = l->call ? l->call->site : NULL;

	(void)call;
	if (site)
		stp_lower_near(l, site->what, site->pos);
	else
		stp_lower_near(l, "", (struct src_pos){0});
	ir_raise(&l->b, args[0]);
	return unreached(l);
}

ir_reg stp_func_assert(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_block *good = ir_block_new(&l->b), *bad = ir_block_new(&l->b);

	stp_lower_near(l, "", (struct src_pos){0});
	ir_br(&l->b, args[0], good, bad);
	ir_at(&l->b, bad);
	ir_raise(&l->b, call->nargs > 1 ? args[1] : stp_lower_str(l, "Assertion failed"));
	ir_at(&l->b, good);
	return IR_NO_REG;
}

ir_reg stp_func_log(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	stp_lower_record(l, IR_ACT_PRINTF, "%s\n", args, 1, call->pos);
	return IR_NO_REG;
}

ir_reg stp_func_warn(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	stp_lower_record(l, IR_ACT_WARN, NULL, args, 1, call->pos);
	return IR_NO_REG;
}

ir_reg stp_func_system(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	stp_lower_record(l, IR_ACT_SYSTEM, "%s", args, 1, call->pos);
	return IR_NO_REG;
}
