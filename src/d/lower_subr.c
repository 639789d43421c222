/*
 * Subroutines that are composed of other operations.
 *
 * Guide: "Actions and Subroutines".
 */
#include "d/lower.h"

#include <assert.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>

#include "abi/record.h"
#include "abi/segment.h"
#include "d/check.h"

/* Swap the low @bytes of @v between network order and this machine's little-endian order. */
static ir_reg swap(struct lower *l, ir_reg v, int bytes)
{
	ir_reg sum = ir_const(&l->b, 0), part;

	for (int i = 0; i < bytes; i++) {
		part = ir_op2(&l->b, IR_SHR, v, ir_const(&l->b, 8 * i));
		part = ir_op2(&l->b, IR_AND, part, ir_const(&l->b, 0xff));
		part = ir_op2(&l->b, IR_SHL, part, ir_const(&l->b, 8 * (bytes - 1 - i)));
		sum = ir_op2(&l->b, IR_OR, sum, part);
	}
	return sum;
}

static ir_reg swap16(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	return swap(l, args[0], 2);
}

static ir_reg swap32(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	return swap(l, args[0], 4);
}

static ir_reg swap64(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	return swap(l, args[0], 8);
}

static ir_reg bits(struct lower *l, ir_reg v, int from, int64_t mask)
{
	return ir_op2(&l->b, IR_AND, ir_op2(&l->b, IR_SHR, v, ir_const(&l->b, from)), ir_const(&l->b, mask));
}

/* The kernel's device numbers: 12 bits of major above 20 bits of minor (linux/kdev_t.h). */
static ir_reg getmajor(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	return bits(l, args[0], 20, 0xfff);
}

static ir_reg getminor(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	return bits(l, args[0], 0, 0xfffff);
}

static ir_reg call2(struct lower *l, enum ir_fn fn, ir_reg a, ir_reg b)
{
	const ir_reg args[] = { a, b };

	return ir_call(&l->b, fn, args, 2);
}

/* @text = @prefix and @digits; then jump to @done. */
static void prefixed(struct lower *l, ir_reg text, const char *prefix, ir_reg digits, struct ir_block *done)
{
	ir_mov(&l->b, text, *prefix ? call2(l, IR_FN_STRJOIN, ir_strc(&l->b, prefix), digits) : digits);
	ir_jmp(&l->b, done);
}

/* A base that no number has is an illegal operation, as in illumos (DIF_SUBR_LLTOSTR, DIF_SUBR_STRTOLL). */
static void check_base(struct lower *l, const struct d_node *call, ir_reg base)
{
	struct ir_block *good, *bad;
	int64_t n = 10;

	if (call->nargs < 2 || (d_const(l->check->prog, call->args[1], &n) && n >= 2 && n <= 36))
		return;
	good = ir_block_new(&l->b);
	bad = ir_block_new(&l->b);
	ir_br(&l->b, ir_op2(&l->b, IR_ULE, ir_op2(&l->b, IR_SUB, base, ir_const(&l->b, 2)), ir_const(&l->b, 34)), good, bad);
	ir_at(&l->b, bad);
	ir_fault(&l->b, ABI_FAULT_ILLOP, base);
	ir_at(&l->b, good);
}

static ir_reg strtoll_in(struct lower *l, struct d_node *call, const ir_reg *args)
{
	check_base(l, call, args[1]);
	/* As in illumos, dtrace_strtoll(). */
	return call2(l, IR_FN_STRTOL, args[0], ir_op2(&l->b, IR_OR, args[1], ir_const(&l->b, IR_STRTOL_LOOSE)));
}

/* Numbers in base 16 begin with 0x, those in base 8 with 0, as illumos's do (DIF_SUBR_LLTOSTR). */
static ir_reg lltostr(struct lower *l, struct d_node *call, const ir_reg *args)
{
	struct ir_block *hex, *other, *octal, *plain, *done;
	ir_reg digits, text;
	int64_t base = 10;

	check_base(l, call, args[1]);
	digits = call2(l, IR_FN_LLTOSTR, args[0], args[1]);
	if (call->nargs < 2 || (d_const(l->check->prog, call->args[1], &base) && base != 8 && base != 16))
		return digits;
	hex = ir_block_new(&l->b);
	other = ir_block_new(&l->b);
	octal = ir_block_new(&l->b);
	plain = ir_block_new(&l->b);
	done = ir_block_new(&l->b);
	text = ir_reg_new(&l->b, IR_STR);
	ir_br(&l->b, ir_op2(&l->b, IR_EQ, args[1], ir_const(&l->b, 16)), hex, other);
	ir_at(&l->b, hex);
	prefixed(l, text, "0x", digits, done);
	ir_at(&l->b, other);
	ir_br(&l->b, ir_op2(&l->b, IR_AND, ir_op2(&l->b, IR_EQ, args[1], ir_const(&l->b, 8)),
			    ir_op2(&l->b, IR_NE, args[0], ir_const(&l->b, 0))), octal, plain);
	ir_at(&l->b, octal);
	prefixed(l, text, "0", digits, done);
	ir_at(&l->b, plain);
	prefixed(l, text, "", digits, done);
	ir_at(&l->b, done);
	return text;
}

/* Four bytes at an address in the clause's memory or the kernel's, as 192.0.2.1. */
static ir_reg inet_ntoa(struct lower *l, struct d_node *call, const ir_reg *args)
{
	ir_reg text = IR_NO_REG, byte;

	(void)call;
	for (int i = 0; i < 4; i++) {
		byte = ir_load(&l->b, IR_LOAD, ir_op2(&l->b, IR_ADD, args[0], ir_const(&l->b, i)), 1, false);
		byte = call2(l, IR_FN_LLTOSTR, byte, ir_const(&l->b, 10));
		if (i)
			text = call2(l, IR_FN_STRJOIN, text, ir_strc(&l->b, "."));
		text = i ? call2(l, IR_FN_STRJOIN, text, byte) : byte;
	}
	return text;
}

/* The eight bytes at @addr as a big-endian number. */
static ir_reg load_swapped(struct lower *l, ir_reg addr, int64_t off)
{
	return swap(l, ir_load(&l->b, IR_LOAD, ir_op2(&l->b, IR_ADD, addr, ir_const(&l->b, off)), 8, false), 8);
}

/*
 * Sixteen bytes at such an address, as 2001:db8::1.  The IPv4 address in a mapped (::ffff:192.0.2.1) or compatible
 * (::192.0.2.1) address is shown in dotted form, as in DTrace for Linux; :: and ::1 are not compatible addresses.
 */
static ir_reg ntoa6(struct lower *l, struct d_node *call, ir_reg addr)
{
	struct ir_block *low_only = ir_block_new(&l->b), *compatible = ir_block_new(&l->b);
	struct ir_block *four = ir_block_new(&l->b), *six = ir_block_new(&l->b), *done = ir_block_new(&l->b);
	ir_reg high = load_swapped(l, addr, 0), low = load_swapped(l, addr, 8);
	ir_reg text = ir_reg_new(&l->b, IR_STR), prefix, part;

	ir_br(&l->b, high, six, low_only);
	ir_at(&l->b, low_only);
	prefix = ir_op2(&l->b, IR_SHR, low, ir_const(&l->b, 32));
	ir_br(&l->b, ir_op2(&l->b, IR_EQ, prefix, ir_const(&l->b, 0xffff)), four, compatible);
	ir_at(&l->b, compatible);
	ir_br(&l->b, ir_op2(&l->b, IR_AND, ir_op2(&l->b, IR_EQ, prefix, ir_const(&l->b, 0)),
			    ir_op2(&l->b, IR_ULT, ir_const(&l->b, 1), low)), four, six);
	ir_at(&l->b, four);
	part = ir_op2(&l->b, IR_ADD, addr, ir_const(&l->b, 12));
	ir_mov(&l->b, text, inet_ntoa(l, call, &part));
	ir_jmp(&l->b, done);
	ir_at(&l->b, six);
	ir_mov(&l->b, text, call2(l, IR_FN_INET6, high, low));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return text;
}

static ir_reg inet_ntoa6(struct lower *l, struct d_node *call, const ir_reg *args)
{
	return ntoa6(l, call, args[0]);
}

/* AF_INET or AF_INET6; another family is a fault. */
static ir_reg inet_ntop(struct lower *l, struct d_node *call, const ir_reg *args)
{
	struct ir_block *four = ir_block_new(&l->b), *other = ir_block_new(&l->b), *six = ir_block_new(&l->b);
	struct ir_block *none = ir_block_new(&l->b), *done = ir_block_new(&l->b);
	ir_reg text = ir_reg_new(&l->b, IR_STR);

	ir_br(&l->b, ir_op2(&l->b, IR_EQ, args[0], ir_const(&l->b, AF_INET)), four, other);
	ir_at(&l->b, four);
	ir_mov(&l->b, text, inet_ntoa(l, call, args + 1));
	ir_jmp(&l->b, done);
	ir_at(&l->b, other);
	ir_br(&l->b, ir_op2(&l->b, IR_EQ, args[0], ir_const(&l->b, AF_INET6)), six, none);
	ir_at(&l->b, six);
	ir_mov(&l->b, text, ntoa6(l, call, args[1]));
	ir_jmp(&l->b, done);
	ir_at(&l->b, none);
	ir_fault(&l->b, ABI_FAULT_ILLOP, args[0]);
	ir_at(&l->b, done);
	return text;
}

/* Six bytes of Ethernet (ARPHRD_ETHER) as 00:1b:21:0a:0b:0c; another type is a fault. */
static ir_reg link_ntop(struct lower *l, struct d_node *call, const ir_reg *args)
{
	struct ir_block *ether = ir_block_new(&l->b), *none = ir_block_new(&l->b), *done = ir_block_new(&l->b);
	ir_reg text = ir_reg_new(&l->b, IR_STR), digit[2], byte, s = IR_NO_REG;

	(void)call;
	ir_br(&l->b, ir_op2(&l->b, IR_EQ, args[0], ir_const(&l->b, ARPHRD_ETHER)), ether, none);
	ir_at(&l->b, none);
	ir_fault(&l->b, ABI_FAULT_ILLOP, args[0]);
	ir_at(&l->b, ether);
	for (int i = 0; i < 6; i++) {
		byte = ir_load(&l->b, IR_LOAD, ir_op2(&l->b, IR_ADD, args[1], ir_const(&l->b, i)), 1, false);
		digit[0] = call2(l, IR_FN_LLTOSTR, bits(l, byte, 4, 15), ir_const(&l->b, 16));
		digit[1] = call2(l, IR_FN_LLTOSTR, bits(l, byte, 0, 15), ir_const(&l->b, 16));
		if (i)
			s = call2(l, IR_FN_STRJOIN, s, ir_strc(&l->b, ":"));
		s = i ? call2(l, IR_FN_STRJOIN, s, digit[0]) : digit[0];
		s = call2(l, IR_FN_STRJOIN, s, digit[1]);
	}
	ir_mov(&l->b, text, s);
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return text;
}

static ir_reg bcopy_bytes(struct lower *l, struct d_node *call, const ir_reg *args)
{
	const ir_reg copy[] = { args[0], args[2], args[1] };

	return ir_call(&l->b, !type_is_string(call->args[0]->type) && lower_is_user(call->args[0]) ? IR_FN_COPYINTO : IR_FN_BCOPY, copy, 3);
}

/*
 * The rest for the next strtok().  As in DTrace for Linux it begins with the delimiter that ended the token: the next
 * call may have other delimiters.
 */
static ir_reg with_end(struct lower *l, ir_reg from, ir_reg rest)
{
	struct ir_block *some = ir_block_new(&l->b), *done = ir_block_new(&l->b);
	ir_reg ret = ir_reg_new(&l->b, IR_STR), left = ir_call(&l->b, IR_FN_STRLEN, &rest, 1), args[3];

	ir_mov(&l->b, ret, rest);
	ir_br(&l->b, left, some, done);
	ir_at(&l->b, some);
	args[0] = from;
	args[1] = ir_op2(&l->b, IR_SUB, ir_call(&l->b, IR_FN_STRLEN, &from, 1), left);
	args[1] = ir_op2(&l->b, IR_SUB, args[1], ir_const(&l->b, 1));
	args[2] = ir_const(&l->b, l->prog->strsize);
	ir_mov(&l->b, ret, ir_call(&l->b, IR_FN_SUBSTR, args, 3));
	ir_jmp(&l->b, done);
	ir_at(&l->b, done);
	return ret;
}

/* strtok(NULL, ...) continues where the clause's last call stopped. */
static ir_reg next_token(struct lower *l, struct d_node *call, const ir_reg *args)
{
	ir_reg from = args[0], token;

	if (!l->token)
		l->token = ir_var_new(l->prog, "strtok", IR_CLAUSE, (struct ir_slot){ .type = IR_STR });
	if (node_is_zero(l->check, call->args[0]))
		from = ir_vld(&l->b, l->token);
	token = call2(l, IR_FN_TOKEN, from, args[1]);
	ir_vst(&l->b, l->token, with_end(l, from, call2(l, IR_FN_UNTOKEN, from, args[1])));
	return token;
}

/* _task_pid() and similar subroutines. */
static ir_reg task_fact(struct lower *l, struct d_node *call, const ir_reg *args)
{
	static const struct {
		const char *name;
		int fact;
	} facts[] = {
		{ "_task_egid", ABI_TASK_EGID }, { "_task_euid", ABI_TASK_EUID }, { "_task_gid", ABI_TASK_GID },
		{ "_task_pgrp", ABI_TASK_PGRP }, { "_task_pid", ABI_TASK_PID },	  { "_task_sid", ABI_TASK_SID },
		{ "_task_tid", ABI_TASK_TID },	 { "_task_uid", ABI_TASK_UID },
	};
	size_t i = 0;

	while (strcmp(facts[i].name, call->ident->name) != 0)
		i++;
	return call2(l, IR_FN_TASK, args[0], ir_const(&l->b, facts[i].fact));
}

/* By number or by name. */
static ir_reg pyitem(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	return call2(l, l->b.clause->regs[args[1]] == IR_STR ? IR_FN_PYKEY : IR_FN_PYITEM, args[0], args[1]);
}

static ir_reg pyarg(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	return ir_call(&l->b, l->b.clause->regs[args[0]] == IR_STR ? IR_FN_PYNAMED : IR_FN_PYARG, args, 1);
}

static ir_reg speculation(struct lower *l, struct d_node *call, const ir_reg *args)
{
	(void)call;
	(void)args;
	return lower_speculation(l);
}

ir_reg lower_subr(struct lower *l, struct d_node *call, const ir_reg *args)
{
	static const struct {
		const char *name;
		ir_reg (*lower)(struct lower *l, struct d_node *call, const ir_reg *args);
	} subrs[] = {
		{ "bcopy", bcopy_bytes }, { "getmajor", getmajor }, { "getminor", getminor }, { "htonl", swap32 },  { "htonll", swap64 },
		{ "htons", swap16 },	  { "inet_ntoa", inet_ntoa }, { "inet_ntoa6", inet_ntoa6 },
		{ "inet_ntop", inet_ntop }, { "link_ntop", link_ntop }, { "lltostr", lltostr },
		{ "ntohl", swap32 }, { "ntohll", swap64 },
		{ "ntohs", swap16 },	  { "pyarg", pyarg }, { "pyitem", pyitem }, { "speculation", speculation },
		{ "strtok", next_token }, { "strtoll", strtoll_in },
		{ "_task_egid", task_fact }, { "_task_euid", task_fact }, { "_task_gid", task_fact },
		{ "_task_pgrp", task_fact }, { "_task_pid", task_fact },  { "_task_sid", task_fact },
		{ "_task_tid", task_fact },  { "_task_uid", task_fact },
	};
	size_t i = 0;

	while (strcmp(subrs[i].name, call->ident->name) != 0) {
		i++;
		assert(i < sizeof(subrs) / sizeof(subrs[0]));
	}
	return subrs[i].lower(l, call, args);
}
