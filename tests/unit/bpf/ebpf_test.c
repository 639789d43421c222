/*
 * What can be said of programs without a kernel: which maps a unit needs, where lines are, what is refused, that
 * relocations and jumps stay inside.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "bpf/ebpf.h"

static const struct ebpf_sizes sizes = { .bufsize = 65536, .aggsize = 1 << 20, .dynvarsize = 1 << 20, .nprobes = 1 };

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

static struct ebpf_unit *unit(struct arena *a, const char *text)
{
	const char *err = NULL;
	struct ir_prog *p = ir_read(a, text, &err);
	struct ebpf_unit *u;

	if (!p)
		fail_msg("%s", err);
	if ((err = ir_check(p)))
		fail_msg("%s", err);
	u = ebpf_unit_new(p, &sizes, &err);
	if (!u)
		fail_msg("%s", err);
	return u;
}

static struct ebpf_prog *compile(struct ebpf_unit *u, const struct ebpf_env *env)
{
	const char *err;
	struct ebpf_prog *p = ebpf_compile(u, env, u->prog->clauses, u->prog->nclauses, NULL, 0, &err);

	if (!p)
		fail_msg("%s", err);
	return p;
}

static void only_needed_maps(void **state)
{
	struct ebpf_unit *u = unit(*state, "agg \"\" count keys i8\nclause\nb0: r0 = arg 0\nagg 0 r0\nret\n");
	uint32_t first;

	assert_int_equal(u->maps[EBPF_MAP_GLOBALS].type, BPF_MAP_TYPE_UNSPEC);
	assert_int_equal(u->maps[EBPF_MAP_THREADS].type, BPF_MAP_TYPE_UNSPEC);
	/* An integer key is built on the stack. */
	assert_int_equal(u->maps[EBPF_MAP_SCRATCH].type, BPF_MAP_TYPE_UNSPEC);
	assert_int_equal(ebpf_agg_maps(u, u->prog->aggs[0], &first), 1);
	assert_int_equal(u->maps[first].type, BPF_MAP_TYPE_PERCPU_HASH);
	assert_int_equal(u->maps[first].key_size, 8);
}

static void lines(void **state)
{
	struct ebpf_unit *u = unit(*state, "clause\nb0:\nr0 = arg 0\nr1 = arg 1\nr2 = add r0 r1\n"
					   "br b1 b1 r2\nb1:\nret\n");
	struct ebpf_env env = { .ctx = EBPF_CTX_RUN };
	struct ebpf_prog *p = compile(u, &env);

	assert_null(ebpf_line_find(p, 0));
	for (uint32_t k = 0; k < p->nlines; k++) {
		assert_ptr_equal(ebpf_line_find(p, p->lines[k].insn), &p->lines[k]);
		if (k)
			assert_true(p->lines[k].insn > p->lines[k - 1].insn);
	}
	assert_int_equal(p->lines[0].pos.line, 3);
	assert_ptr_equal(ebpf_line_find(p, p->ninsns), &p->lines[p->nlines - 1]);
}

/* What the agent is asked for a program in the kernel: in order, each by what others before have given. */
static void wanted_values(void **state)
{
	struct ebpf_unit *u = unit(*state, "clause\nregs sisii\nb0:\nr0 = strc \"self\"\nr1 = call pynamed r0\nr2 = strc \"id\"\n"
					   "r3 = call pyattr r1 r2\nr4 = call pyint r3\nret\n");
	const char *err = NULL;
	uint32_t n = 0;
	struct ebpf_wanted *w = ebpf_wanted(u, u->prog->clauses, u->prog->nclauses, &n, &err);

	assert_non_null(w);
	assert_int_equal(n, 3);
	assert_int_equal(w[0].abi.what, ABI_VALUE_NAMED);
	assert_int_equal(w[0].abi.name_from, ABI_WANTED_TEXT);
	assert_string_equal(w[0].text, "self");
	assert_int_equal(w[1].abi.what, ABI_VALUE_ATTR);
	assert_int_equal(w[1].abi.object_from, 1);
	assert_string_equal(w[1].text, "id");
	assert_int_equal(w[2].abi.what, ABI_VALUE_INT);
	assert_int_equal(w[2].abi.object_from, 2);
	assert_null(w[2].text);
	for (uint32_t k = 0; k < n; k++)
		assert_int_equal(w[k].abi.off, k * sizeof(struct abi_given));
}

static void unwanted_values(void **state)
{
	struct ebpf_unit *u = unit(*state, "clause\nb0:\nr0 = arg 0\nr1 = call pyint r0\nret\n");
	const char *err = NULL;
	uint32_t n = 0;

	assert_null(ebpf_wanted(u, u->prog->clauses, u->prog->nclauses, &n, &err));
	assert_non_null(strstr(err, ":4:"));
	assert_non_null(strstr(err, "pyint() of what is not of this event"));
}

static void all_inside(void **state)
{
	struct ebpf_unit *u = unit(*state, "agg \"\" stddev keys s\nclause\nregs iiss\nb0:\nr0 = arg 0\nr1 = const 9\n"
					   "r2 = call copyinstr r0 r1\nr3 = call basename r2\nagg 0 r0 r3\nret\n");
	struct ebpf_env env = { .ctx = EBPF_CTX_UPROBE, .sleepable = true };
	struct ebpf_prog *p = compile(u, &env);
	struct strbuf text = { 0 };

	assert_true(p->sleepable);
	for (uint32_t k = 0; k < p->nrelocs; k++) {
		assert_true(p->relocs[k].insn + 1 < p->ninsns);
		assert_true(p->relocs[k].map < u->nmaps);
		assert_int_equal(p->insns[p->relocs[k].insn].code, BPF_LD | BPF_IMM | BPF_DW);
		assert_int_not_equal(u->maps[p->relocs[k].map].type, BPF_MAP_TYPE_UNSPEC);
	}
	for (uint32_t k = 0; k < p->ninsns; k++) {
		const struct bpf_insn *i = &p->insns[k];
		int64_t to = (int64_t)k + 1 + i->off;

		if (i->code == (BPF_LD | BPF_IMM | BPF_DW)) {
			k++;
			continue;
		}
		if (i->code == (BPF_JMP | BPF_CALL) && i->src_reg == BPF_PSEUDO_CALL)
			to = (int64_t)k + 1 + i->imm;
		else if ((BPF_CLASS(i->code) != BPF_JMP && BPF_CLASS(i->code) != BPF_JMP32) ||
			 BPF_OP(i->code) == BPF_CALL || BPF_OP(i->code) == BPF_EXIT)
			continue;
		assert_true(to >= 0 && to < p->ninsns);
	}
	ebpf_disasm(p, &text);
	assert_null(strstr(strbuf_str(&text), "??"));
	strbuf_fini(&text);
}

/* The agent's marker of a function by name, wherever its compiler has left the event's address. */
static void places_of_an_event(void **state)
{
	static const struct ebpf_operand places[] = {
		{ .loc = EBPF_LOC_REG, .width = 8, .reg_off = 16 },
		{ .loc = EBPF_LOC_CONST, .width = 8, .value = 4096 },
		{ .loc = EBPF_LOC_MEM, .width = 8, .has_base = true, .reg_off = 32, .value = -24 },
		{ .loc = EBPF_LOC_MEM, .width = 8, .has_base = true, .has_index = true, .reg_off = 32, .index_off = 40, .scale = 8 },
		{ .loc = EBPF_LOC_MEM, .width = 8, .value = 4096 },
	};

	for (size_t k = 0; k < sizeof(places) / sizeof(*places); k++) {
		struct ebpf_unit *u = unit(*state, "agg \"\" count keys\nclause\nregs i\nb0:\nr0 = const 1\nagg 0\nret\n");

		for (int sleepable = 0; sleepable < 2; sleepable++) {
			struct ebpf_env env = { .ctx = EBPF_CTX_UPROBE, .sleepable = sleepable, .away = 77, .nargs = 4,
						.args = { places[0], places[0], places[0], places[k] } };

			assert_true(compile(u, &env)->ninsns > 0);
		}
	}
}

static void unknown_kernel_structures(void **state)
{
	struct ebpf_unit *u = unit(*state, "clause\nb0: r0 = builtin ppid\nret\n");
	struct ebpf_env env = { .ctx = EBPF_CTX_RUN };
	const char *err = NULL;

	assert_null(ebpf_compile(u, &env, u->prog->clauses, 1, NULL, 0, &err));
	assert_non_null(strstr(err, "ppid"));
}

static void read_errors_have_lines(void **state)
{
	static const struct {
		const char *text, *err;
	} bad[] = {
		{ "strsize 1", "line 1: strsize" },
		{ "clause\nb0:\n\tr0 = nothing", "line 3: expected an operation" },
		{ "clause\nb0:\nr0 = vld 3", "line 3: a number that refers to nothing" },
		{ "var \"x", "line 1: a string without its end" },
		{ "agg \"\" nothing keys", "line 1: expected an aggregating function" },
		{ "?", "line 1: expected strsize" },
	};

	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		const char *err = NULL;

		assert_null(ir_read(*state, bad[k].text, &err));
		assert_non_null(strstr(err, bad[k].err));
	}
}

static void check_finds(void **state)
{
	static const struct {
		const char *text, *err;
	} bad[] = {
		{ "clause\nb0: r0 = const 1", "does not end" },
		{ "clause\nb0: ret ret", "ends before its end" },
		{ "clause\nb0: jmp b1", "b1 is empty" },
		{ "clause\nb0: r0 = add r1 r1\nret", "r1 is not assigned" },
		{ "clause\nregs is\nb0: r1 = strc \"\"\nr0 = neg r1\nret", "wrong type" },
		{ "clause\nb0: r0 = add r0\nret", "wrong number of operands" },
		{ "agg \"\" lquantize keys param 0 0 0 0\nclause\nb0: ret", "impossible parameters" },
		{ "rec 1 fields\nclause\nb0: emit 0 ret\nclause\nb0: ret", "another clause" },
	};

	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
		const char *err = NULL;
		struct ir_prog *p = ir_read(*state, bad[k].text, &err);

		assert_non_null(p);
		err = ir_check(p);
		assert_non_null(err);
		if (!strstr(err, bad[k].err))
			fail_msg("%s: %s", bad[k].err, err);
	}
}

/* What clauses of laps begin and end with; between them is what differs. */
#define LAP_VARS "var \"last\" thread u8\nvar \"this\" clause u8\n"
#define LAP_KEYS "r2 = builtin pid\nr3 = const 4\nr4 = const 120\nr5 = call stack r3 r4\n"
#define LAP_ALL(keys, first, since)									\
	LAP_VARS "agg \"\" avg keys i4 u8\nclause\nregs iiiiiiiiiiii\nb0:\n"			\
	"r0 = vld 0\nvst 1 r0\nr1 = builtin timestamp\nvst 0 r1\n" keys "r7 = vld 1\nbr b1 b2 r7\n"	\
	"b1:\nr8 = builtin timestamp\nr9 = vld 1\nr10 = sub " since "\nr6 = mov r10\njmp b3\n"	\
	"b2:\nr11 = const " first "\nr6 = mov r11\njmp b3\nb3:\nagg 0 r6 r2 r5\nret\n"
#define LAP_LATER(fn, last)										\
	LAP_VARS "agg \"\" " fn " keys i4 u8\nclause\nregs iiiiiiiii\nb0:\n"				\
	"r0 = vld 0\nvst 1 r0\nbr b1 b2 r0\nb1:\nr1 = builtin timestamp\n" last LAP_KEYS			\
	"r6 = builtin timestamp\nr7 = vld 1\nr8 = sub r6 r7\nagg 0 r8 r2 r5\nret\nb2:\nret\n"

/* What happens where there is a time in a variable, @is, and afterwards. */
#define SPAN(fn, keys, is, then)									\
	LAP_VARS "var \"other\" thread u8\nvar \"short\" thread u4\nagg \"\" " fn " keys " keys "\nclause\n" \
	"regs iiiiiiiii\nb0:\nr0 = vld 0\nr1 = builtin timestamp\nr2 = const 1\nr3 = sub r1 r0\nr4 = const 0\n"	\
	"r5 = builtin pid\nr6 = const 2\nr8 = builtin uid\nbr b1 b2 r0\nb1:\n" is "ret\nb2:\n" then "ret\n"

/* The same with keys that are texts: a string of the process at r6, and another one in r7. */
#define TEXTS(fn, address, text)									\
	LAP_VARS "agg \"\" " fn " keys s s\nclause\nregs iiiiisiss\nb0:\nr0 = vld 0\nr1 = builtin timestamp\n"	\
	"r2 = const 1\nr3 = sub r1 r0\nr4 = const 0\n" address "br b1 b2 r0\nb1:\n" text "r2 = const 256\n" \
	"r5 = call copyinstr r6 r2\nr2 = const 1\nr8 = call strjoin r5 r7\nagg 0 r3 r2 r8 r7\nvst 0 r4\nret\nb2:\nret\n"

static void laps(void **state)
{
	static const struct {
		const char *text;
		enum abi_known want;
		uint32_t frames;
	} cases[] = {
		{ LAP_ALL(LAP_KEYS, "0", "r8 r9"), ABI_KNOWN_LAP_ALL, 120 },
		{ LAP_LATER("sum", "vst 0 r1\n"), ABI_KNOWN_LAP_LATER, 120 },
		/* Written in another way, with the same effect. */
		{ LAP_VARS "agg \"\" sum keys i4 u8\nclause\nregs iiiiiiiii\nb0:\nr0 = vld 0\nbr b1 b2 r0\nb1:\n" LAP_KEYS
		  "r1 = builtin timestamp\nr8 = sub r1 r0\nagg 0 r8 r2 r5\nvst 0 r1\nret\nb2:\nret\n", ABI_KNOWN_LAP_LATER, 120 },
		{ LAP_VARS "clause\nregs i\nb0:\nr0 = builtin timestamp\nvst 0 r0\nret\n", ABI_KNOWN_START, 0 },
		{ LAP_VARS "clause\nregs ii\nb0:\nr0 = builtin timestamp\nvst 1 r0\nr1 = vld 1\nvst 0 r1\nret\n", ABI_KNOWN_START, 0 },
		{ SPAN("quantize", "", "agg 0 r3 r2\nvst 0 r4\n", ""), ABI_KNOWN_STOP, ABI_STOP_QUANTIZE },
		{ SPAN("sum", "", "vst 0 r4\nvst 1 r3\nr7 = vld 1\nagg 0 r7\n", ""), ABI_KNOWN_STOP, ABI_STOP_SUM },
		{ SPAN("avg", "", "agg 0 r3\nvst 0 r4\n", ""), ABI_KNOWN_STOP, ABI_STOP_AVG },
		/* With keys. */
		{ SPAN("sum", "i4 i8", "agg 0 r3 r5 r6\nvst 0 r4\n", ""), ABI_KNOWN_STOP, ABI_STOP_SUM },
		{ TEXTS("quantize", "r6 = arg 1\n", "r7 = builtin probefunc\n"), ABI_KNOWN_STOP, ABI_STOP_QUANTIZE },
		{ TEXTS("quantize", "r6 = arg 2\n", "r7 = builtin probefunc\n"), ABI_KNOWN_NONE },
		{ TEXTS("quantize", "r6 = arg 0\n", "r7 = builtin execname\n"), ABI_KNOWN_NONE },
		/* Something else: a clock, a variable that is too small, another one besides. */
		{ LAP_VARS "clause\nregs i\nb0:\nr0 = builtin walltimestamp\nvst 0 r0\nret\n", ABI_KNOWN_NONE },
		{ LAP_VARS "clause\nregs i\nb0:\nr0 = builtin timestamp\nvst 1 r0\nret\n", ABI_KNOWN_NONE },
		{ SPAN("sum", "", "vst 2 r1\n", "vst 2 r1\n"), ABI_KNOWN_NONE },
		{ SPAN("quantize", "", "agg 0 r3 r2\nvst 2 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("quantize", "", "agg 0 r3 r2\nvst 3 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("quantize", "", "agg 0 r3 r2\n", ""), ABI_KNOWN_STOP, ABI_STOP_QUANTIZE | ABI_STOP_KEEPS },
		{ SPAN("sum", "i4", "agg 0 r3 r5\n", ""), ABI_KNOWN_STOP, ABI_STOP_SUM | ABI_STOP_KEEPS },
		/* Another value, another time; another function, difference, increment or key; what is done without a time. */
		{ SPAN("quantize", "", "agg 0 r3 r2\nvst 0 r2\n", ""), ABI_KNOWN_NONE },
		{ SPAN("quantize", "", "agg 0 r3 r2\nvst 0 r1\n", ""), ABI_KNOWN_NONE },
		{ SPAN("max", "", "agg 0 r3\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "", "agg 0 r1\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "", "r7 = sub r0 r1\nagg 0 r7\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "", "agg 0 r3\nagg 0 r3\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("quantize", "", "agg 0 r3 r6\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "i4", "agg 0 r3 r8\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "u8", "agg 0 r3 r0\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "i8", "r7 = arg 2\nagg 0 r3 r7\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "i8", "r7 = arg 0\nagg 0 r3 r7\nvst 0 r4\n", ""), ABI_KNOWN_NONE },
		{ SPAN("sum", "", "agg 0 r3\nvst 0 r4\n", "r7 = builtin timestamp\nvst 0 r7\n"), ABI_KNOWN_NONE },
		{ SPAN("sum", "", "agg 0 r3\nvst 0 r4\n", "r7 = const 0\nagg 0 r7\n"), ABI_KNOWN_NONE },
		/* Something else: a first time, a difference, a key, a stack, a function, a time that is not stored. */
		{ LAP_ALL(LAP_KEYS, "1", "r8 r9"), ABI_KNOWN_NONE },
		{ LAP_ALL(LAP_KEYS, "0", "r9 r8"), ABI_KNOWN_NONE },
		{ LAP_ALL("r2 = builtin uid\nr3 = const 4\nr4 = const 120\nr5 = call stack r3 r4\n", "0", "r8 r9"), ABI_KNOWN_NONE },
		{ LAP_ALL("r2 = builtin pid\nr3 = const 2\nr4 = const 120\nr5 = call stack r3 r4\n", "0", "r8 r9"), ABI_KNOWN_NONE },
		{ LAP_LATER("max", "vst 0 r1\n"), ABI_KNOWN_NONE },
		{ LAP_LATER("sum", ""), ABI_KNOWN_NONE },
		{ LAP_LATER("sum", "vst 0 r0\n"), ABI_KNOWN_NONE },
		{ "agg \"\" count keys\nclause\nregs i\nb0:\nr0 = const 1\nagg 0\nret\n", ABI_KNOWN_NONE },
		{ "clause\nb0: ret\n", ABI_KNOWN_NONE },
	};
	struct ebpf_known known;

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct ebpf_unit *u = unit(*state, cases[k].text);

		known = ebpf_known(u, u->prog->clauses[0]);
		if (known.what != cases[k].want)
			fail_msg("case %zu", k);
		if (cases[k].want)
			assert_int_equal(known.frames, cases[k].frames);
	}
}

/* A record of @fields; the instructions before it. */
#define RECORD(fields, before, registers)								\
	"rec 0 fields " fields "\nclause\nregs iisiii\nb0:\nr0 = arg 1\nr1 = const 256\n" before "emit 0 " registers "\nret\n"

static void records(void **state)
{
	static const struct {
		const char *text;
		uint32_t nfields, fields;	/* nfields 0: something else */
	} cases[] = {
		{ RECORD("s i8", "r2 = call copyinstr r0 r1\nr3 = arg 2\n", "r2 r3"), 2, ABI_FIELD_TEXT1 | ABI_FIELD_ARG2 << 4 },
		{ RECORD("u8 s u8", "r0 = arg 0\nr2 = call copyinstr r0 r1\nr3 = builtin timestamp\n", "r3 r2 r0"), 3,
		  ABI_FIELD_TIME | ABI_FIELD_TEXT0 << 4 | ABI_FIELD_ARG0 << 8 },
		{ RECORD("i4 u4 u8", "r3 = builtin pid\nr4 = builtin tid\nr5 = arg 3\n", "r3 r4 r5"), 3,
		  ABI_FIELD_PID | ABI_FIELD_TID << 4 | ABI_FIELD_ARG3 << 8 },
		{ RECORD("u8 u8 u8 u8 u8 u8 u8 u8", "", "r0 r0 r0 r0 r0 r0 r0 r0"), 8, 0x11111111 },
		/* Too many; a string cut shorter, or of another place; another value; a computed one; another action, or what else happens. */
		{ RECORD("u8 u8 u8 u8 u8 u8 u8 u8 u8", "", "r0 r0 r0 r0 r0 r0 r0 r0 r0"), 0, 0 },
		{ RECORD("s", "r1 = const 255\nr2 = call copyinstr r0 r1\n", "r2"), 0, 0 },
		{ RECORD("s", "r0 = arg 2\nr2 = call copyinstr r0 r1\n", "r2"), 0, 0 },
		{ RECORD("s", "r2 = builtin probefunc\n", "r2"), 0, 0 },
		{ RECORD("i8", "r3 = builtin uid\n", "r3"), 0, 0 },
		{ RECORD("i8", "r3 = arg 4\n", "r3"), 0, 0 },
		{ RECORD("i8", "r3 = add r0 r0\n", "r3"), 0, 0 },
		{ RECORD("i8", "", "r1"), 0, 0 },
		{ RECORD("u8", "emit 0 r0\n", "r0"), 0, 0 },
		{ "var \"x\" global u8\n" RECORD("u8", "vst 0 r0\n", "r0"), 0, 0 },
	};
	struct ebpf_known known;

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct ebpf_unit *u = unit(*state, cases[k].text);

		known = ebpf_known(u, u->prog->clauses[0]);
		if (known.what != (cases[k].nfields ? ABI_KNOWN_RECORD : ABI_KNOWN_NONE))
			fail_msg("case %zu", k);
		assert_int_equal(known.nfields, cases[k].nfields);
		assert_int_equal(known.fields, cases[k].fields);
		assert_int_equal(known.strsize, known.what ? u->prog->strsize : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(laps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(records, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_needed_maps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wanted_values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unwanted_values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_inside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(places_of_an_event, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unknown_kernel_structures, set_up, tear_down),
		cmocka_unit_test_setup_teardown(read_errors_have_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(check_finds, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
