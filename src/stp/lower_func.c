/*
 * The builtin functions of functions.def, but for those that read memory (lower_mem.c).
 *
 * SystemTap tapset reference.  What a handler knows of its probe point is known when the script is compiled.
 */
#include "stp/lower_func.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "stp/lower.h"

enum { NS_PER_S = 1000000000 };

/* --- the handler ------------------------------------------------------------------------------------- */

ir_reg low_func_pp(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return low_str(l, l->clause->pp);
}

ir_reg low_func_pn(struct low *l, struct stp_node *call, const ir_reg *args)
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
	return low_str(l, text);
}

bool low_in_kernel(const struct low *l)
{
	return !strcmp(l->handler->point->comps[0].name, "kernel");
}

static const char *comp_text(const struct low *l, const char *name)
{
	const struct stp_point *p = l->handler->point;

	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->comps[i].name, name) && p->comps[i].arg && p->comps[i].arg->kind == STP_STR)
			return p->comps[i].arg->str;
	return NULL;
}

/* "f" of function("f@file.c:3") or statement(...). */
static const char *point_func(struct low *l)
{
	const char *s = comp_text(l, "function");

	if (!s)
		s = comp_text(l, "statement");
	return s ? arena_strndup(l->arena, s, strcspn(s, "@")) : NULL;
}

ir_reg low_func_ppfunc(struct low *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = point_func(l);

	(void)call;
	(void)args;
	return low_str(l, s ? s : "");
}

ir_reg low_func_probefunc(struct low *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = point_func(l);

	(void)call;
	(void)args;
	return s ? low_str(l, s) : ir_builtin(&l->b, IR_B_PROBEFUNC);
}

ir_reg low_func_probemod(struct low *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = comp_text(l, "library");

	(void)call;
	(void)args;
	if (!s)
		s = comp_text(l, "process");
	return s ? low_str(l, s) : ir_builtin(&l->b, IR_B_PROBEMOD);
}

/* The names of SystemTap's enum stp_probe_type, as its context tapset gives them. */
ir_reg low_func_probe_type(struct low *l, struct stp_node *call, const ir_reg *args)
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
		[STP_P_PLT] = "uprobe", [STP_P_PLT_RETURN] = "uretprobe", [STP_P_TRACEPOINT] = "tracepoint",
		[STP_P_KERNEL] = "kprobe", [STP_P_PERF] = "perf", [STP_P_PROCFS] = "procfs", [STP_P_INPUT] = "input",
	};

	(void)call;
	(void)args;
	return low_str(l, names[l->handler->kind]);
}

ir_reg low_func_is_return(struct low *l, struct stp_node *call, const ir_reg *args)
{
	int kind = l->handler->kind;

	(void)call;
	(void)args;
	return low_const(l, kind == STP_P_RETURN || kind == STP_P_PLT_RETURN || kind == STP_P_SYSCALL_RETURN);
}

/* There is no kernel module; the name is that of the process that would have made it. */
ir_reg low_func_module_name(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return low_str(l, arena_printf(l->arena, "stap_%d", (int)getpid()));
}

ir_reg low_func_stp_pid(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return low_const(l, getpid());
}

/* A number's place in a function's result is argument 1 of the probe at its return (arch.h, call_result). */
ir_reg low_func_returnval(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	if (l->handler->kind == STP_P_SYSCALL_RETURN)	/* behind what the C library makes of it, or the call's number */
		return ir_arg(&l->b, low_in_kernel(l) ? 2 : 1);
	if (l->handler->kind != STP_P_RETURN && l->handler->kind != STP_P_PLT_RETURN) {
		low_refuse(l, call, "it is known in a probe of a function's, or system call's, .return", "there is no returned value");
		return low_const(l, 0);
	}
	return ir_arg(&l->b, 1);
}

/* The label of .label("x"). */
ir_reg low_func_pnlabel(struct low *l, struct stp_node *call, const ir_reg *args)
{
	const char *s = comp_text(l, "label");

	(void)call;
	(void)args;
	return low_str(l, s ? s : "");
}

ir_reg low_func_remote_uri(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return low_str(l, "");
}

ir_reg low_func_registers_valid(struct low *l, struct stp_node *call, const ir_reg *args)
{
	int kind = l->handler->kind;

	(void)call;
	(void)args;
	return low_const(l, kind == STP_P_MARK || kind == STP_P_FUNCTION || kind == STP_P_INLINE || kind == STP_P_RETURN ||
			    kind == STP_P_STATEMENT || kind == STP_P_PLT || kind == STP_P_PLT_RETURN);
}

/* Has the process the user that runs the script? */
ir_reg low_func_is_myproc(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return ir_op2(&l->b, IR_EQ, ir_builtin(&l->b, IR_B_UID), low_const(l, getuid()));
}

ir_reg low_func_page_size(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return low_const(l, sysconf(_SC_PAGESIZE));
}

/* Are ids those of a namespace, not of the whole machine?  The inode of the machine's is fixed (PROC_PID_INIT_INO). */
ir_reg low_func_in_pid_ns(struct low *l, struct stp_node *call, const ir_reg *args)
{
	struct stat st;

	(void)call;
	(void)args;
	return low_const(l, !stat("/proc/self/ns/pid", &st) && st.st_ino != 0xeffffffc);
}

/* Where a function's arguments are does not depend on this. */
ir_reg low_func_nothing(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)l;
	(void)call;
	(void)args;
	return IR_NO_REG;
}

ir_reg low_func_number(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return low_const(l, (int)call->builtin->number);
}

/* --- time -------------------------------------------------------------------------------------------- */

static ir_reg scaled(struct low *l, struct stp_node *call, enum ir_builtin clock)
{
	ir_reg ns = ir_builtin(&l->b, clock);

	return call->builtin->number == 1 ? ns : ir_op2(&l->b, IR_UDIV, ns, low_const(l, call->builtin->number));
}

ir_reg low_func_wall(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return scaled(l, call, IR_B_WALLTIMESTAMP);
}

ir_reg low_func_monotonic(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)args;
	return scaled(l, call, IR_B_TIMESTAMP);
}

/* CLOCK_REALTIME is 0; all others are taken for CLOCK_MONOTONIC. */
ir_reg low_func_clock_gettime(struct low *l, struct stp_node *call, const ir_reg *args)
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

static ir_reg byte_at(struct low *l, ir_reg s, ir_reg pos)
{
	ir_reg args[2] = { s, pos };

	return ir_call(&l->b, IR_FN_BYTEAT, args, 2);
}

ir_reg low_func_isdigit(struct low *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg c = byte_at(l, args[0], low_const(l, 0));

	(void)call;
	return ir_op2(&l->b, IR_ULT, ir_op2(&l->b, IR_SUB, c, low_const(l, '0')), low_const(l, 10));
}

static ir_reg index_of(struct low *l, const ir_reg *args)
{
	ir_reg all[3] = { args[0], args[1], low_const(l, 0) };

	return ir_call(&l->b, IR_FN_INDEX, all, 3);
}

ir_reg low_func_isinstr(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return ir_op2(&l->b, IR_SLE, low_const(l, 0), index_of(l, args));
}

ir_reg low_func_strpos(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return index_of(l, args);
}

/* A byte as C's char, which is signed on x86-64. */
ir_reg low_func_stringat(struct low *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_block *in = ir_block_new(&l->b), *out = ir_block_new(&l->b);

	(void)call;
	ir_br(&l->b, ir_op2(&l->b, IR_ULT, args[1], ir_call(&l->b, IR_FN_STRLEN, args, 1)), in, out);
	ir_at(&l->b, out);
	ir_raise(&l->b, low_str(l, "Position out of bounds"));
	ir_at(&l->b, in);
	return ir_ext(&l->b, byte_at(l, args[0], args[1]), 1, true);
}

static ir_reg escape(struct low *l, ir_reg s, bool quoted)
{
	ir_reg args[2] = { s, low_const(l, quoted) };

	return ir_call(&l->b, IR_FN_ESCAPE, args, 2);
}

ir_reg low_func_text_str(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return escape(l, args[0], false);
}

ir_reg low_func_string_quoted(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	return escape(l, args[0], true);
}

/* text_strn(string, length, quoted): length 0 is all. */
ir_reg low_func_text_strn(struct low *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_block *some = ir_block_new(&l->b), *all = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	ir_reg s = ir_reg_new(&l->b, IR_STR), part[3] = { args[0], low_const(l, 0), args[1] };

	(void)call;
	ir_br(&l->b, args[1], some, all);
	ir_at(&l->b, some);
	ir_mov(&l->b, s, ir_call(&l->b, IR_FN_SLICE, part, 3));
	ir_jmp(&l->b, end);
	ir_at(&l->b, all);
	ir_mov(&l->b, s, args[0]);
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	part[0] = s;
	part[1] = args[2];
	return ir_call(&l->b, IR_FN_ESCAPE, part, 2);
}

/* tokenize(string, delimiters) begins, tokenize(delimiters) or an empty string goes on. */
ir_reg low_func_tokenize(struct low *l, struct stp_node *call, const ir_reg *args)
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

ir_reg low_func_exit(struct low *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg status = low_const(l, 0);

	(void)args;
	low_record(l, IR_ACT_EXIT, NULL, &status, 1, call->pos);
	ir_exiting(&l->b, false);
	return IR_NO_REG;
}

/* Behind an instruction that ends a block nothing is reached, but the builder goes on. */
static ir_reg unreached(struct low *l)
{
	ir_at(&l->b, ir_block_new(&l->b));
	return IR_NO_REG;
}

ir_reg low_func_abort(struct low *l, struct stp_node *call, const ir_reg *args)
{
	low_func_exit(l, call, args);
	ir_ret(&l->b);
	return unreached(l);
}

ir_reg low_func_error(struct low *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	low_near(l, "", (struct src_pos){0});
	ir_raise(&l->b, args[0]);
	return unreached(l);
}

ir_reg low_func_assert(struct low *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_block *good = ir_block_new(&l->b), *bad = ir_block_new(&l->b);

	low_near(l, "", (struct src_pos){0});
	ir_br(&l->b, args[0], good, bad);
	ir_at(&l->b, bad);
	ir_raise(&l->b, call->nargs > 1 ? args[1] : low_str(l, "Assertion failed"));
	ir_at(&l->b, good);
	return IR_NO_REG;
}

ir_reg low_func_log(struct low *l, struct stp_node *call, const ir_reg *args)
{
	low_record(l, IR_ACT_PRINTF, "%s\n", args, 1, call->pos);
	return IR_NO_REG;
}

ir_reg low_func_warn(struct low *l, struct stp_node *call, const ir_reg *args)
{
	low_record(l, IR_ACT_WARN, NULL, args, 1, call->pos);
	return IR_NO_REG;
}

ir_reg low_func_system(struct low *l, struct stp_node *call, const ir_reg *args)
{
	low_record(l, IR_ACT_SYSTEM, "%s", args, 1, call->pos);
	return IR_NO_REG;
}
