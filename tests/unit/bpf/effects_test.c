/*
 * The effects that ir/ops.def, funcs.def and builtins.def tell, against the code that is made: each row has a program,
 * made from what the row says of operands, in which it stands alone.  It may fault exactly if there is code for a fault;
 * it is refused where its row says that there is no code; and a string that is read before it is read before it in the
 * code as well, if it writes there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "abi/segment.h"
#include "base/arena.h"
#include "base/strbuf.h"
#include "bpf/ebpf.h"
#include "bpf/frame.h"
#include "bpf/unit.h"
#include "ir/facts.h"

static const struct ebpf_sizes sizes = { .bufsize = 65536, .aggsize = 1 << 20, .dynvarsize = 1 << 20, .nprobes = 1 };

/* What the rows may mention. */
static const char objects[] = "var \"i\" global i8\n"
			      "var \"s\" global s\n"
			      "map \"m\" global keys s value i8 ordered max 9\n"
			      "map \"t\" global keys i8 stat extremes squares log ordered max 9\n"
			      "iter 0\n"
			      "agg \"\" sum keys s\n"
			      "rec 0 fields i8\n"
			      "rec 0 fields s\n"
			      "rec 0 fields i8 stat 1\n";

/* Operations whose place in a clause matters: the lines of a program around theirs. */
static const struct {
	enum ir_op op;
	const char *text;
} special[] = {
	{ IR_JMP, "\nb0: jmp b1\nb1: ret\n" },
	{ IR_BR, "\nb0: r0 = vld 0\nbr b1 b2 r0\nb1: jmp b2\nb2: ret\n" },
	{ IR_RET, "\nb0: ret\n" },
	{ IR_FAULT, "\nb0: r0 = const 1\nfault 1 r0\n" },
	{ IR_TURN, "\nb0: jmp b1\nb1: turn\nr0 = vld 0\nbr b1 b2 r0\nb2: ret\n" },
};

/* Not alone in a program: these hold others together, whose code has faults of its own. */
static bool is_left_out(enum ir_op op)
{
	static const enum ir_op ops[] = { IR_PASS, IR_ENTER, IR_LEAVE, IR_TRY, IR_ENDTRY, IR_RAISE, IR_CAUGHT, IR_CAUGHTSTR,
					  IR_BUDGET, IR_SPEND, IR_IKEY, IR_IVALUE, IR_IDONE, IR_INEXT, IR_MOV, IR_CALL,
					  IR_BUILTIN };

	for (size_t k = 0; k < sizeof(ops) / sizeof(*ops); k++)
		if (ops[k] == op)
			return true;
	return false;
}

/* The operands of a row, each a register of its own from @reg on; and those registers' definitions, integers @constant. */
static void operands(struct strbuf *defs, struct strbuf *use, const char *types, unsigned int reg, bool constant)
{
	for (; *types; types++, reg++) {
		if (constant && *types != 's')
			strbuf_printf(defs, "r%u = const 8\n", reg);
		else
			strbuf_printf(defs, "r%u = vld %d\n", reg, *types == 's');
		strbuf_printf(use, " r%u", reg);
	}
}

static bool is_of_statistics(enum ir_op op)
{
	return op >= IR_STAT && op <= IR_SBUCKET;
}

static const char *attribute(enum ir_op op)
{
	if (op == IR_AGG || op == IR_EMIT || op == IR_MATCH || op == IR_SPRINTF)
		return op == IR_MATCH ? " \"a\"" : op == IR_SPRINTF ? " \"%d\"" : " 0";
	switch (ir_op_fact(op)->attr) {
	case IR_ATTR_WIDTH:
		return " i4";
	case IR_ATTR_STR:
		return " \"text\"";
	case IR_ATTR_MAP:
		return is_of_statistics(op) ? " 1" : " 0";
	case IR_ATTR_NONE:
		return "";
	default:
		return " 0";
	}
}

/* The operands of @op that its objects decide. */
static const char *more(enum ir_op op)
{
	switch (op) {
	case IR_VST:
	case IR_SPRINTF:
	case IR_EMIT:
		return "i";
	case IR_MST:
	case IR_AGG:
		return "is";
	case IR_MCLEAR:
		return "";
	default:
		return ir_op_fact(op)->attr != IR_ATTR_MAP ? "" : is_of_statistics(op) ? "i" : "s";
	}
}

/* @name with its operands, as the only such instruction. */
static char *alone(struct arena *a, const char *name, const char *attr, const char *types, char result, bool constant)
{
	struct strbuf defs = { 0 }, use = { 0 }, text = { 0 };
	char *ret;

	operands(&defs, &use, types, 1, constant);
	strbuf_printf(&text, "regs %c%s\nb0:\n%s%s%s%s%s\nret\n", result == 's' ? 's' : 'i', types, strbuf_str(&defs), result == '-' ? "" : "r0 = ", name, attr, strbuf_str(&use));
	ret = arena_strdup(a, strbuf_str(&text));
	strbuf_fini(&defs);
	strbuf_fini(&use);
	strbuf_fini(&text);
	return ret;
}

static struct ebpf_unit *unit(struct arena *a, const char *clause)
{
	const char *err = NULL, *text = arena_printf(a, "strsize 64\n%sclause \"\":\"\":\"\":\"\" %s", objects, clause);
	struct ir_prog *p = ir_read(a, text, &err);
	struct ebpf_unit *u;

	if (!p || (err = ir_check(p)))
		fail_msg("%s\n%s", clause, err);
	u = ebpf_unit_new(p, &sizes, &err);
	if (!u)
		fail_msg("%s\n%s", clause, err);
	return u;
}

/* Is there code for a fault, other than that of copying a string that is there?  -1: none in this environment. */
static int faults(struct ebpf_unit *u, const struct ebpf_env *env)
{
	const char *err = NULL;
	const struct ebpf_prog *p = ebpf_compile(u, env, u->prog->clauses, 1, NULL, 0, &err);

	if (!p)
		return -1;
	for (uint32_t k = 0; k < p->ninsns; k++) {
		const struct bpf_insn *i = &p->insns[k];

		if (i->code == (BPF_ST | BPF_MEM | BPF_DW) && i->dst_reg == 10 && i->off == FRAME_FAULT + 8 * FAULT_KIND)
			return 1;
	}
	return 0;
}

/* @name's row says that it @may fault: does the code of @text or @second say so in any environment? */
static void check(struct arena *a, const char *name, const char *text, const char *second, bool may)
{
	static const struct ebpf_task_path fact = { .n = 1, .off = { 8 }, .kind = 4 };
	struct ebpf_tasks tasks = { 0 };
	struct ebpf_paths paths = { 0 };
	struct ebpf_operand arg = { .loc = EBPF_LOC_MEM, .width = 8, .has_base = true };
	struct ebpf_env envs[2] = {
		{ .ctx = EBPF_CTX_UPROBE, .nargs = 1, .args = { arg }, .task_parent = 8, .task_tgid = 16, .tasks = &tasks,
		  .paths = &paths, .task_mm = 8, .mm_arg_start = 8, .mm_arg_end = 16, .task_runtime = 8, .mm_exe = 8,
		  .mm_start_code = 8 },
		{ .ctx = EBPF_CTX_TARGET, .user_space = true },
	};
	int found = -1;

	for (size_t k = 0; k < sizeof(tasks.facts) / sizeof(*tasks.facts); k++)
		tasks.facts[k] = fact;
	memset(&paths, 1, sizeof(paths));
	for (int k = 0; k < 4; k++) {
		int here = faults(unit(a, k & 2 ? second : text), &envs[k & 1]);

		if (here > found)
			found = here;
	}
	if (found < 0)
		fail_msg("%s: no code in any environment:\n%s", name, text);
	if (found != may)
		fail_msg("%s %s, says its row, but not its code:\n%s", name, may ? "may fault" : "never faults", text);
}

static void single(struct arena *a, const char *name, const char *what, const char *attr, const char *types, char result, bool may)
{
	check(a, name, alone(a, what, attr, types, result, false), alone(a, what, attr, types, result, true), may);
}

/* Strings that are there are copied by code which has a fault that never happens: such rows tell nothing. */
static bool has_string(const char *types, char result)
{
	return result == 's' || strchr(types, 's');
}

static void operations(void **state)
{
	struct arena *a = *state;

	for (int op = 0; op < IR_OP_MAX; op++) {
		const struct ir_op_fact *f = ir_op_fact((enum ir_op)op);
		bool may = f->effects & (IR_FAULTS | IR_FILLS);
		char types[8] = "", *star;
		const char *text = NULL;

		for (size_t k = 0; k < sizeof(special) / sizeof(*special); k++)
			if ((int)special[k].op == op)
				text = special[k].text;
		if (text) {
			check(a, f->text, text, text, may);
			continue;
		}
		if (is_left_out((enum ir_op)op))
			continue;
		strcpy(types, f->operands);
		if ((star = strchr(types, '*')))
			strcpy(star, more((enum ir_op)op));
		if (has_string(types, f->result) && !may)
			continue;
		single(a, f->text, f->text, attribute((enum ir_op)op), types, f->result == '*' ? 'i' : f->result, may);
	}
}

/* A record with a statistic, which may have no values. */
static void statistic_in_record(void **state)
{
	const char *text = "regs ii\nb0:\nr0 = vld 0\nemit 2 r0 r0\nret\n";
	const struct ir_prog *p = unit(*state, text)->prog;

	assert_true(ir_may_fault(&p->clauses[0]->blocks[0]->insns[1]));
	check(*state, "emit", text, text, true);
}

static void functions(void **state)
{
	for (int fn = 0; fn < IR_FN_MAX; fn++) {
		struct ir_insn i = { .op = IR_CALL, .fn = (enum ir_fn)fn };
		enum ir_type types[IR_MAX_OPERANDS], result;
		char letters[8] = "";
		uint32_t n;
		bool may = ir_effects(&i) & IR_FAULTS;

		ir_insn_types(&i, types, &n, &result);
		for (uint32_t k = 0; k < n; k++)
			letters[k] = (char)types[k];
		if (has_string(letters, (char)result) && !may)
			continue;
		single(*state, ir_fn_text(i.fn), arena_printf(*state, "call %s", ir_fn_text(i.fn)), "", letters, (char)result, may);
	}
}

static void builtins(void **state)
{
	for (int bi = 0; bi < IR_B_MAX; bi++) {
		char type = (char)ir_builtin_type((enum ir_builtin)bi);
		bool may = ir_builtin_effects((enum ir_builtin)bi) & IR_FAULTS;
		const char *name = ir_builtin_text((enum ir_builtin)bi);

		if (type == 's' && !may)
			continue;
		single(*state, name, arena_printf(*state, "builtin %s", name), "", "", type, may);
	}
}

/* --- where --------------------------------------------------------------------------------------------- */

/* Programs that have @text: refused, with the words of the row, exactly where the row says that there is no code. */
static void check_place(struct arena *a, const char *name, const char *text, struct ir_place place)
{
	struct ebpf_env envs[] = {
		{ .ctx = EBPF_CTX_UPROBE }, { .ctx = EBPF_CTX_RUN }, { .ctx = EBPF_CTX_TARGET, .user_space = true },
	};
	bool here[][4] = {
		{ [IR_ANY] = true, [IR_KERNEL] = true, [IR_STOPPED] = true },
		{ [IR_ANY] = true, [IR_KERNEL] = true },
		{ [IR_ANY] = true, [IR_TARGET] = true },
	};

	for (size_t k = 0; k < sizeof(envs) / sizeof(*envs); k++) {
		struct ebpf_unit *u = unit(a, text);
		const char *err = NULL;

		ebpf_compile(u, &envs[k], u->prog->clauses, 1, NULL, 0, &err);
		if (!here[k][place.where] && (!err || strcmp(err, place.why)))
			fail_msg("%s in environment %zu: %s, not: %s", name, k, err ? err : "there is code", place.why);
		if (here[k][place.where] && place.why && err && !strcmp(err, place.why))
			fail_msg("%s in environment %zu: %s", name, k, err);
	}
}

static void places(void **state)
{
	for (int fn = 0; fn < IR_FN_MAX; fn++) {
		struct ir_insn i = { .op = IR_CALL, .fn = (enum ir_fn)fn };
		const char *name = ir_fn_text(i.fn);
		enum ir_type types[IR_MAX_OPERANDS], result;
		char letters[8] = "";
		uint32_t n;

		ir_insn_types(&i, types, &n, &result);
		for (uint32_t k = 0; k < n; k++)
			letters[k] = (char)types[k];
		check_place(*state, name, alone(*state, arena_printf(*state, "call %s", name), "", letters, (char)result, true),
			    ir_place(&i));
	}
	for (int bi = 0; bi < IR_B_MAX; bi++) {
		struct ir_insn i = { .op = IR_BUILTIN, .bi = (enum ir_builtin)bi };
		const char *name = ir_builtin_text(i.bi);

		check_place(*state, name, alone(*state, arena_printf(*state, "builtin %s", name), "", "",
						(char)ir_builtin_type(i.bi), true), ir_place(&i));
	}
}

/* --- order --------------------------------------------------------------------------------------------- */

/*
 * What makes a string, something behind it, and whether that has to find the string made already.  If not, it is
 * made in the record.
 */
static const struct {
	const char *maker, *between;
	bool stays;
} orders[] = {
	{ "r1 = vld 1", "r2 = const 1\nvst 0 r2", true },
	{ "r1 = vld 1", "r2 = arg 0", false },
	{ "r1 = vld 1", "r2 = arg 0\nr3 = arg 1\nr4 = sdiv r2 r3", false },
	{ "r1 = builtin execname", "r2 = const 1\nvst 0 r2", false },
	{ "r0 = arg 0\nr5 = const 64\nr1 = call copyinstr r0 r5", "r2 = arg 0", false },
	{ "r0 = arg 0\nr5 = const 64\nr1 = call copyinstr r0 r5", "r2 = arg 0\nr3 = arg 1\nr4 = sdiv r2 r3", true },
	{ "r0 = arg 0\nr5 = const 64\nr1 = call copyinstr r0 r5", "r2 = const 1\nvst 0 r2", true },
	{ "r0 = arg 0\nr5 = const 64\nr1 = call copyinstr r0 r5", "r6 = strc \"AB\"\nr3 = call copyoutstr r6 r0 r5", true },
	{ "r0 = arg 0\nr5 = const 64\nr1 = call copyinstr r0 r5", "r2 = const 8\nr3 = call upoke r0 r2 r2", true },
	{ "r0 = arg 0\nr1 = call stringof r0", "r2 = const 8\nr3 = call poke r0 r2 r2", true },
	{ "r0 = arg 0\nr1 = call stringof r0", "r2 = builtin timestamp", false },
};

static void order(void **state)
{
	for (size_t k = 0; k < sizeof(orders) / sizeof(*orders); k++) {
		const char *text = arena_printf(*state, "regs isiiiis\nb0:\n%s\n%s\nemit 1 r1\nret\n", orders[k].maker, orders[k].between);
		const struct ebpf_unit *u = unit(*state, text);
		const struct plan *p = u->priv->plans[0];

		if ((p->late[1] == NULL) != orders[k].stays)
			fail_msg("%s:\n%s", orders[k].stays ? "not in time" : "copied twice", text);
	}
}

static int set_up(void **state)
{
	*state = arena_new();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	arena_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(operations, set_up, tear_down),
		cmocka_unit_test_setup_teardown(statistic_in_record, set_up, tear_down),
		cmocka_unit_test_setup_teardown(functions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(builtins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(order, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
