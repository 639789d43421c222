/*
 * The builtin functions that read memory.  For unreadable memory, depending on the function, there is an error that
 * names the call, or a substitute (tapset reference, "User-space string and data functions").
 */
#include "stp/lower_func.h"

#include <string.h>

#include "arch/arch.h"
#include "base/arena.h"
#include "lang/diag.h"
#include "stp/lower.h"

enum { SIGNED = 16 };

/* --- numbers ----------------------------------------------------------------------------------------- */

static ir_reg memory(struct lower *l, struct stp_node *call, const ir_reg *args, enum ir_op op)
{
	unsigned int n = call->builtin->number;

	return ir_load(&l->b, op, args[0], n & ~SIGNED, n & SIGNED);
}

ir_reg stp_func_user_memory(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	return memory(l, call, args, IR_ULOAD);
}

/* 0 if the memory cannot be read. */
ir_reg stp_func_user_peek(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	return memory(l, call, args, IR_UPEEK);
}

/* The same, with a warning. */
ir_reg stp_func_user_warn(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_block *body = ir_block_new(&l->b), *caught = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	struct ir_var *value = stp_lower_temp(l, STP_LONG), *at = stp_lower_temp(l, STP_LONG);
	const char *type = call->builtin->name + strlen("user_");
	bool is_unsigned = *type == 'u';
	ir_reg r;

	ir_vst(&l->b, value, stp_lower_const(l, 0));
	ir_vst(&l->b, at, args[0]);
	ir_try(&l->b, caught, body);
	ir_at(&l->b, body);
	r = memory(l, call, args, IR_ULOAD);
	ir_endtry(&l->b);
	ir_vst(&l->b, value, r);
	ir_jmp(&l->b, end);
	ir_at(&l->b, caught);
	r = ir_vld(&l->b, at);
	r = stp_lower_sprintf(l, arena_printf(l->arena, "user %s%.*s copy fault %%p [man error::fault]", is_unsigned ? "unsigned " : "",
					      (int)strcspn(type + is_unsigned, "_"), type + is_unsigned), &r, 1);
	stp_lower_record(l, IR_ACT_WARN, NULL, &r, 1, call->pos);
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return ir_vld(&l->b, value);
}

ir_reg stp_func_kernel_memory(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	return memory(l, call, args, IR_LOAD);
}

/* The 8 bytes at @off of the registers that the kernel kept when it was entered. */
static ir_reg user_register(struct lower *l, int64_t off)
{
	ir_reg at = stp_lower_const(l, off);

	return ir_call(&l->b, IR_FN_UREG, &at, 1);
}

/* int_arg(n): the n-th argument, from 1.  process.syscall has the call's number before them. */
ir_reg stp_func_arg(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const struct stp_node *n = call->args[0];
	unsigned int type = call->builtin->number, first;

	(void)args;
	/* When a system call returns, the registers of its arguments are as they were. */
	if (n->kind == STP_NUM && n->value >= 1 && n->value <= 6 && l->handler &&
	    l->handler->kind == STP_P_SYSCALL_RETURN && arch_host())
		return ir_ext(&l->b, user_register(l, arch_host()->kept.syscall_args[n->value - 1]), type & ~SIGNED,
			      type & SIGNED);
	if (n->kind != STP_NUM || n->value < 1 || n->value > 6 || !l->handler || l->handler->kind == STP_P_RETURN ||
	    l->handler->kind == STP_P_STATEMENT || l->handler->kind == STP_P_INLINE || l->handler->point->inlined) {
		stp_lower_refuse(l, call, "write a number from 1 to 6, in a probe of a function's .call",
				 "the argument is not known");
		return stp_lower_const(l, 0);
	}
	first = l->handler->kind == STP_P_SYSCALL_ENTRY && !stp_lower_in_kernel(l);
	return ir_ext(&l->b, ir_arg(&l->b, (unsigned int)n->value - 1 + first), type & ~SIGNED, type & SIGNED);
}

static bool is_register(const struct arch *arch, const char *name, struct arch_operand *op)
{
	*op = (struct arch_operand){ 0 };
	return !arch->parse(name, strlen(name), op) && op->loc == ARCH_LOC_REG && op->reg && op->reg->kind <= ARCH_REG_PC;
}

/* The register of that name in assembler, with % before it or not, or of struct pt_regs; or NULL. */
static const struct arch_reg *find_register(struct lower *l, const struct arch *arch, const char *name)
{
	struct arch_operand op = { 0 };

	if (is_register(arch, name, &op) || is_register(arch, arena_printf(l->arena, "%%%s", name), &op))
		return op.reg;
	for (const struct arch_reg *r = arch->kept.others; r && r->name; r++)
		if (!strcmp(r->name, name))
			return r;
	return NULL;
}

ir_reg stp_lower_register(struct lower *l, const struct stp_node *n, const struct arch_reg *reg)
{
	enum stp_point_kind kind = l->handler ? (enum stp_point_kind)l->handler->kind : STP_P_BEGIN;
	unsigned int within = 8 * (reg->off % 8);
	ir_reg both[2], whole;

	switch (kind) {
	case STP_P_FUNCTION: case STP_P_RETURN: case STP_P_STATEMENT: case STP_P_MARK:
	case STP_P_INLINE: case STP_P_PLT: case STP_P_PLT_RETURN:
		both[0] = stp_lower_const(l, reg->off);
		both[1] = stp_lower_const(l, reg->width);
		return ir_call(&l->b, IR_FN_REG, both, 2);
	case STP_P_SYSCALL_ENTRY: case STP_P_SYSCALL_RETURN: case STP_P_TRACEPOINT: case STP_P_TIMER_PROFILE:
	case STP_P_PERF: case STP_P_DATA:
		whole = user_register(l, reg->off - reg->off % 8);
		if (within)
			whole = ir_op2(&l->b, IR_SHR, whole, stp_lower_const(l, within));
		return reg->width < 8 ? ir_ext(&l->b, whole, reg->width, false) : whole;
	default:
		stp_lower_refuse(l, n, "they are known in probes of functions, marks and system calls",
				 "cannot access CPU registers in this context");
		return stp_lower_const(l, 0);
	}
}

/* The text that @n always is, or NULL: of a literal, or of a global that nobody assigns to. */
static const char *constant_text(const struct stp_node *n)
{
	if (n->kind == STP_NAME && n->var && n->var->is_global && !n->var->writes && n->var->init)
		n = n->var->init;
	return n->kind == STP_STR ? n->str : NULL;
}

/* A register of the processor by its name in assembler. */
ir_reg stp_func_register(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	const char *name = constant_text(call->args[0]);
	const struct arch_reg *reg = name && arch_host() ? find_register(l, arch_host(), name) : NULL;

	(void)args;
	if (!reg) {
		stp_lower_refuse(l, call, "write the name of one that is for integers, as \"rdi\"", "unknown register");
		return stp_lower_const(l, 0);
	}
	return ir_ext(&l->b, stp_lower_register(l, call, reg), reg->width, call->builtin->number);
}

/* @uregister(n), @kregister(n): the register of that number in DWARF. */
ir_reg stp_lower_numbered_register(struct lower *l, const struct stp_node *n)
{
	enum { MAX_NUMBERS = 40 };
	struct arch_operand ops[MAX_NUMBERS] = { 0 };
	const struct arch *arch = arch_host();
	unsigned int known = arch ? arch_operands(arch, arch->dwarf_regs, ops, MAX_NUMBERS) : 0;

	if (known > MAX_NUMBERS)
		known = MAX_NUMBERS;
	if (n->l->kind != STP_NUM || n->l->value < 0 || n->l->value >= known || ops[n->l->value].loc != ARCH_LOC_REG ||
	    !ops[n->l->value].reg || ops[n->l->value].reg->kind > ARCH_REG_PC) {
		stp_lower_refuse(l, n, "write DWARF's number of one that is for integers: 0 is \"rax\" on x86-64",
				 "unknown register");
		return stp_lower_const(l, 0);
	}
	return stp_lower_register(l, n, ops[n->l->value].reg);
}

/* --- strings ----------------------------------------------------------------------------------------- */

/* @n limited to @low ... @high. */
static ir_reg clamp(struct lower *l, ir_reg n, int64_t low, int64_t high)
{
	struct ir_block *small = ir_block_new(&l->b), *other = ir_block_new(&l->b), *large = ir_block_new(&l->b);
	struct ir_block *end = ir_block_new(&l->b);
	ir_reg r = ir_reg_new(&l->b, IR_INT);

	ir_mov(&l->b, r, n);
	ir_br(&l->b, ir_op2(&l->b, IR_SLT, n, stp_lower_const(l, low)), small, other);
	ir_at(&l->b, small);
	ir_mov(&l->b, r, stp_lower_const(l, low));
	ir_jmp(&l->b, end);
	ir_at(&l->b, other);
	ir_br(&l->b, ir_op2(&l->b, IR_SLT, stp_lower_const(l, high), n), large, end);
	ir_at(&l->b, large);
	ir_mov(&l->b, r, stp_lower_const(l, high));
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
	return r;
}

/* The size, with the NUL, of a string limited by the call's second argument, if given. */
static ir_reg string_size(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	int64_t max = l->prog->strsize;
	const struct stp_node *n;

	if (!call->builtin->number)
		return stp_lower_const(l, max);
	n = call->args[1];
	if (n->kind == STP_NUM)
		return stp_lower_const(l, n->value < 0 ? 1 : n->value >= max ? max : n->value + 1);
	return clamp(l, ir_op2(&l->b, IR_ADD, args[1], stp_lower_const(l, 1)), 1, max);
}

static ir_reg copy(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg both[2] = { args[0], string_size(l, call, args) };

	return ir_call(&l->b, IR_FN_COPYINSTR, both, 2);
}

#define COPY_FAULT "user string copy fault -14 at 0x%x [man error::fault]"

ir_reg stp_func_user_string(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	l->code->nears[l->b.act].text = COPY_FAULT;
	return copy(l, call, args);
}

ir_reg stp_func_kernel_string(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	(void)call;
	l->code->nears[l->b.act].text = "kernel string copy fault at 0x%x [man error::fault]";
	return ir_call(&l->b, IR_FN_STRINGOF, args, 1);
}

/*
 * A value with a substitute: the code between guard and guarded computes the value; if it faults, the code between
 * guarded and otherwise computes the substitute.  An argument that the latter needs is kept in a variable.
 */
struct guard {
	struct ir_var *value, *kept;
	struct ir_block *caught, *end;
};

static void guard(struct lower *l, struct guard *g, ir_reg keep, enum stp_type type)
{
	struct ir_block *body = ir_block_new(&l->b);

	g->value = stp_lower_temp(l, STP_STRINGS);
	g->caught = ir_block_new(&l->b);
	g->end = ir_block_new(&l->b);
	if (type != STP_UNKNOWN) {
		g->kept = stp_lower_temp(l, type);
		ir_vst(&l->b, g->kept, keep);
	}
	ir_try(&l->b, g->caught, body);
	ir_at(&l->b, body);
}

static void guarded(struct lower *l, struct guard *g, ir_reg value)
{
	ir_endtry(&l->b);
	ir_vst(&l->b, g->value, value);
	ir_jmp(&l->b, g->end);
	ir_at(&l->b, g->caught);
}

static ir_reg otherwise(struct lower *l, struct guard *g, ir_reg value)
{
	ir_vst(&l->b, g->value, value);
	ir_jmp(&l->b, g->end);
	ir_at(&l->b, g->end);
	return ir_vld(&l->b, g->value);
}

ir_reg stp_func_string_or(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct guard g;

	guard(l, &g, args[call->nargs - 1], STP_STRINGS);
	guarded(l, &g, copy(l, call, args));
	return otherwise(l, &g, ir_vld(&l->b, g.kept));
}

ir_reg stp_func_kernel_string_or(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct guard g;

	(void)call;
	guard(l, &g, args[1], STP_STRINGS);
	guarded(l, &g, ir_call(&l->b, IR_FN_STRINGOF, args, 1));
	return otherwise(l, &g, ir_vld(&l->b, g.kept));
}

ir_reg stp_func_string_nofault(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct guard g;

	guard(l, &g, 0, STP_UNKNOWN);
	guarded(l, &g, copy(l, call, args));
	return otherwise(l, &g, stp_lower_str(l, ""));
}

void stp_lower_read_string(struct lower *l, struct stp_node *call, const ir_reg *args, struct ir_var *text,
			   struct ir_var *instead)
{
	struct ir_block *body = ir_block_new(&l->b), *caught = ir_block_new(&l->b), *end = ir_block_new(&l->b);
	ir_reg r;

	ir_vst(&l->b, instead, args[0]);
	ir_vst(&l->b, text, stp_lower_str(l, ""));
	ir_try(&l->b, caught, body);
	ir_at(&l->b, body);
	r = copy(l, call, args);
	ir_endtry(&l->b);
	ir_vst(&l->b, text, r);
	ir_vst(&l->b, instead, stp_lower_const(l, IR_READABLE));
	ir_jmp(&l->b, end);
	ir_at(&l->b, caught);
	ir_jmp(&l->b, end);
	ir_at(&l->b, end);
}

/* In quotes; the address if it cannot be read. */
ir_reg stp_func_string_quoted_at(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct guard g;
	ir_reg both[2];

	guard(l, &g, args[0], STP_LONG);
	both[0] = copy(l, call, args);
	both[1] = stp_lower_const(l, 1);
	guarded(l, &g, ir_call(&l->b, IR_FN_ESCAPE, both, 2));
	both[0] = ir_vld(&l->b, g.kept);
	return otherwise(l, &g, stp_lower_sprintf(l, "0x%x", both, 1));
}

ir_reg stp_func_kernel_string_n(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	ir_reg part[3] = { stp_func_kernel_string(l, call, args), stp_lower_const(l, 0), args[1] };

	return ir_call(&l->b, IR_FN_SLICE, part, 3);
}

ir_reg stp_func_kernel_string_quoted(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct guard g;
	ir_reg both[2];

	(void)call;
	guard(l, &g, args[0], STP_LONG);
	both[0] = ir_call(&l->b, IR_FN_STRINGOF, args, 1);
	both[1] = stp_lower_const(l, 1);
	guarded(l, &g, ir_call(&l->b, IR_FN_ESCAPE, both, 2));
	both[0] = ir_vld(&l->b, g.kept);
	return otherwise(l, &g, stp_lower_sprintf(l, "0x%x", both, 1));
}

/* A further argument is the substitute. */
ir_reg stp_func_string_warn(struct lower *l, struct stp_node *call, const ir_reg *args)
{
	struct ir_var *instead = stp_lower_temp(l, STP_STRINGS);
	struct guard g;
	ir_reg r;

	ir_vst(&l->b, instead, call->nargs > call->builtin->number + 1 ? args[call->nargs - 1] : stp_lower_str(l, ""));
	guard(l, &g, args[0], STP_LONG);
	guarded(l, &g, copy(l, call, args));
	r = ir_vld(&l->b, g.kept);
	r = stp_lower_sprintf(l, COPY_FAULT, &r, 1);
	stp_lower_record(l, IR_ACT_WARN, NULL, &r, 1, call->pos);
	return otherwise(l, &g, ir_vld(&l->b, instead));
}
