/*
 * From IR to eBPF, as a pure function: no system call, no libbpf, no live system.
 *
 * One eBPF program runs the clauses of one firing in order; a clause that ends early does not end the others.  Where a
 * probe's arguments are differs from site to site (ebpf_env.args), so sites with the same operands and clauses share a
 * program; the attach cookie says which probe fired (its index in the session's table).
 *
 * The result names maps by number (struct ebpf_map); the loader creates them and writes their file descriptors where
 * the relocations say.
 */
#ifndef DTAP_BPF_EBPF_H
#define DTAP_BPF_EBPF_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/bpf.h>

#include "abi/segment.h"
#include "ir/ir.h"

struct arena;
struct strbuf;

/* The program's context, which has the arguments and the probe's index. */
enum ebpf_ctx {
	EBPF_CTX_UPROBE,	/* struct pt_regs; the probe's index is the attach cookie */
	EBPF_CTX_PERF,		/* struct bpf_perf_event_data (profile-N); the index is the attach cookie;
				 * arg0 is the kernel's pc or 0, arg1 the user's pc or 0 */
	EBPF_CTX_RUN,		/* BPF_PROG_TEST_RUN of a raw tracepoint program (BEGIN, END, ERROR, tick): u64[11],
				 * the probe's index and arg0 to arg9 */
	EBPF_CTX_TP,		/* a raw tracepoint: u64[], its arguments as ebpf_env.tp reads them */
	EBPF_CTX_TARGET,	/* a marker that fires in a process of the target place: words as for EBPF_CTX_RUN;
				 * the state must be active */
};

enum ebpf_loc { EBPF_LOC_NONE, EBPF_LOC_CONST, EBPF_LOC_REG, EBPF_LOC_MEM };

/* Where one argument is when the probe fires.  Registers are byte offsets in struct pt_regs. */
struct ebpf_operand {
	enum ebpf_loc loc;
	uint8_t width;		/* bytes: 1, 2, 4, 8 */
	bool sign;
	uint16_t reg_off;	/* REG, MEM base; for REG already pointing at a sub-register's low byte */
	bool has_index;		/* MEM */
	uint16_t index_off;
	uint8_t scale;		/* 1, 2, 4, 8 */
	int64_t value;		/* CONST: the value; MEM: displacement (absolute when there is no base) */
	bool has_base;		/* MEM */
};

/*
 * Events of CPython's lock.  Their sites are calls of pthread_cond_signal() and pthread_cond_timedwait(), whose first
 * argument is the first of ebpf_env.args; what the program sees as arguments is rt/gil.h's.
 */
enum ebpf_gil {
	EBPF_GIL_NONE,
	EBPF_GIL_WAIT,		/* arg0: the lock's address */
	EBPF_GIL_TAKE,		/* arg0: ns that the thread has waited, 0: none; arg1: the lock's address */
	EBPF_GIL_DROP,		/* arg0: ns that the thread has had it, 0: unknown; arg1: the lock's address */
};

enum { EBPF_TP_DEREFS = 5, EBPF_TP_ARGS = 12, EBPF_TP_FILTERS = 4, EBPF_TP_OWN = 3 };

/*
 * A value from a tracepoint: its argument @word, or, with @derefs, a value in kernel structures: the argument is the
 * address of the first one; at offset off[0] in that is the address of the next, and so on; at the last offset is the
 * value.  A bad address reads as 0.
 */
struct ebpf_tp_value {
	enum ebpf_tp_kind {
		EBPF_TP_NONE,		/* 0 */
		EBPF_TP_VALUE,
		EBPF_TP_CONST,		/* off[0] */
		EBPF_TP_EXIT_REASON,	/* an exit code as in wait(2), converted to CLD_EXITED, CLD_KILLED or
					 * CLD_DUMPED */
		EBPF_TP_CURRENT,	/* as VALUE, from the running thread's struct task_struct, not argument @word */
		EBPF_TP_SIGNAL,		/* argument @word, but of a signal that ends the whole process, which the kernel
					 * delivers as SIGKILL, the code that is found as for CURRENT, if there is one */
		EBPF_TP_ERRNO,		/* minus a value from -4095 to -1, else 0 */
	} kind;
	uint8_t word, derefs;
	uint8_t width;			/* bytes of the last read */
	bool sign;
	uint32_t off[EBPF_TP_DEREFS];
	uint32_t other_call, other_off;	/* sys_enter: in this system call off[0] is other_off; 0: no such call */
	enum ebpf_tp_number {		/* a number of the task that all reads but the last lead to: */
		EBPF_TP_NO_NUMBER,
		EBPF_TP_THREAD_NUMBER,	/* where the tracer is in a pid namespace, its number there */
		EBPF_TP_PROCESS_NUMBER,
	} number;
};

/* What fires a program through the kernel's perf events: perf_event_open(2) has the meaning of type, config, access. */
struct ebpf_event {
	uint32_t type;
	uint64_t config;
	uint64_t period;	/* fire after so many of what is counted; or, if @is_freq, as often in a second */
	bool is_freq;
	uint64_t addr;		/* type PERF_TYPE_BREAKPOINT: the memory, and enum HW_BREAKPOINT_* */
	uint32_t len, access;
	bool one_cpu;		/* count on @cpu alone, or on the first one behind it that is online */
	uint32_t cpu;
};

/* A probe on a raw tracepoint. */
struct ebpf_tp {
	const char *name;		/* of the tracepoint */
	enum { EBPF_TP_PLAIN, EBPF_TP_ENTER, EBPF_TP_EXIT } syscalls;	/* sys_enter or sys_exit, by call */
	uint32_t syscall;		/* of the system call */
	struct ebpf_tp_value args[EBPF_TP_ARGS];
	unsigned int nargs;
	struct {			/* the probe fires only if (value & mask) == want; with @differs, if != want */
		struct ebpf_tp_value value;
		uint32_t mask, want;	/* mask 0: the whole value */
		uint32_t or_want;	/* another value that is as good, if has_or */
		bool has_or;
		bool differs;
	} filters[EBPF_TP_FILTERS];
	unsigned int nfilters;
	/* The thread that the event is about, if not the running one: its struct task_struct, offsets in it (bytes). */
	struct ebpf_tp_value task;
	uint32_t task_pid, task_tgid, task_comm;
};

/*
 * Where the kernel keeps a fact of abi/task.def: the offset in each structure of the pointer to the next, or of the
 * fact.
 */
struct ebpf_task_path {
	uint32_t off[2];
	uint8_t n;		/* 0: unknown */
	uint8_t kind;		/* bytes of the fact, or: */
};
enum { EBPF_TASK_ADDR = 0, EBPF_TASK_NR = 16 };
struct ebpf_tasks {
	struct ebpf_task_path facts[ABI_TASK_MAX];
	uint32_t pid_level, pid_numbers, number_size;	/* struct pid: numbers of this size, one per level */
	uint32_t number_ns, ns_inum;	/* in a number the pointer to its namespace; in that the inode */
};

/*
 * Offsets in bytes, from struct task_struct to the directories of a process: the pointer fs; in struct fs_struct two
 * struct path; in struct path two pointers; in struct dentry the pointers to its parent and its name; in struct
 * vfsmount its root; in struct mount its struct vfsmount and the pointers to its parent and its mount point.
 */
struct ebpf_paths {
	uint32_t fs, pwd, root;		/* fs 0: unknown */
	uint32_t path_mnt, path_dentry;
	uint32_t parent, name;
	uint32_t mnt_root, mount_mnt, mount_parent, mountpoint;
};

/*
 * Offsets in bytes, from struct task_struct to the calls whose return a probe waits for: the pointer to struct
 * uprobe_task, in that the first struct return_instance, and in that:
 */
struct ebpf_returns {
	uint32_t utask, first;		/* first 0: unknown */
	uint32_t next;			/* pointer to the caller's struct return_instance */
	uint32_t slot, address;		/* where on the stack the return address was, and its value */
};

/*
 * A value of the traced language that a program in the kernel has from the agent, which has read it at the event: the clauses'
 * instruction, and what the agent is asked.  @text: the name, or NULL.
 */
struct ebpf_wanted {
	const struct ir_insn *insn;
	struct abi_wanted abi;
	const char *text;
};

/* Where the program will run and what the kernel can do. */
struct ebpf_env {
	enum ebpf_ctx ctx;
	struct ebpf_operand args[PROBE_MAX_ARGS];
	unsigned int nargs;
	enum ebpf_gil gil;	/* UPROBE: fire for this only */
	/*
	 * UPROBE at the agent's marker of functions by name (ABI_FIRE_AWAY in abi/segment.h): fire for this session's events of the
	 * probe alone; 0: it is another site.  @named: the probe is a pattern: enter the functions that it has matched in the probe
	 * table.
	 */
	uint64_t away;
	bool named;
	const struct ebpf_wanted *wanted;	/* the values that the clauses ask for */
	uint32_t nwanted;
	uint32_t only_pid;	/* do nothing in other processes; 0: any */
	uint32_t only_cpu;	/* 1 + the only CPU to run on; 0: any */
	/* Do nothing in processes that execute another file: its device and inode (procs_identify); exe_ino 0: any.
	 * Not with user_space. */
	uint64_t exe_dev, exe_ino;
	bool sleepable;		/* may fault user pages in */
	bool skips_caller;	/* UPROBE at a function's start: the kernel's walk of the user stack misses the
				 * caller */
	uint32_t settling;	/* arguments, bit n for arg n: return ABI_RUN_SETTLED if they alone have decided that
				 * no clause does anything.  Only with user_space */
	uint32_t error_probe;	/* the index of the ERROR probe, for its clauses */
	const struct ebpf_tp *tp;	/* EBPF_CTX_TP */
	uint32_t probe;		/* TP, but not system calls: the probe's index */
	uint32_t group;		/* TP: this program's number in EBPF_MAP_SYSCALLS */
	bool turns_called;	/* the kernel has no may_goto (6.9): bpf_loop (5.17) calls the clause for each turn
				 * of a loop */
	/* TP: the kernel functions on the stack between the tracepoint and the program; hi 0: none, in the first:
	 * unknown. */
	struct { uint64_t lo, hi; } own[EBPF_TP_OWN];
	uint32_t hook_ns;	/* what a firing takes without the program, to be summed up; 0: costs are not asked for */
	bool user_space;	/* runs in vm/, not in the kernel: has the helpers of abi/segment.h, and its own
				 * scratch slot and per-CPU values */
	bool pid_ns;		/* the tracer is in this pid namespace (device and inode): pids are those in it */
	uint64_t ns_dev, ns_ino;
	uint32_t ns_level;	/* how many namespaces that one is in; 0: not known */
	/* Offsets in struct task_struct of what no helper returns (bytes); 0: unknown, programs that need it are
	 * refused. */
	uint32_t task_parent, task_tgid, task_runtime, task_exec_start;
	uint32_t task_switches, task_preempted;	/* counts of voluntary and other switches, 8 bytes each */
	uint32_t task_last_arrival;	/* 0: not known; only vtimestamp is less exact then */
	uint32_t task_mm, mm_arg_start, mm_arg_end;	/* the last two in struct mm_struct */
	/* On to the executed file: offsets in struct mm_struct, file, inode twice, super_block. */
	uint32_t mm_exe, file_inode, inode_number, inode_super, super_dev;
	uint32_t mm_start_code, mm_start_stack, task_tls;	/* tls: thread pointer, for pthread_self() */
	/*
	 * From struct task_struct by struct cfs_rq to the CPU's run queue, struct rq, and two clocks in that (0:
	 * unknown).
	 */
	uint32_t task_cfs_rq, cfs_rq_rq, rq_clock, rq_clock_task;
	const struct ebpf_tasks *tasks;	/* may be NULL, like the next two */
	const struct ebpf_paths *paths;
	const struct ebpf_returns *returns;
};

/* --- maps -------------------------------------------------------------------------------------------- */

/* Maps with fixed numbers; the IR's follow from EBPF_MAP_FIRST on. */
enum {
	EBPF_MAP_CONTROL,	/* array of 1 struct abi_control, mmapable */
	EBPF_MAP_PROBES,	/* array of struct abi_probe */
	EBPF_MAP_OUT,		/* ring buffer */
	EBPF_MAP_SCRATCH,	/* array of scratch slots, which programs take and give back */
	EBPF_MAP_RODATA,	/* array of 1: the strings of the program, frozen */
	EBPF_MAP_GLOBALS,	/* array of 1: global variables, mmapable */
	EBPF_MAP_THREADS,	/* hash by thread: all self-> variables that are not arrays */
	EBPF_MAP_ORDER,		/* array of 1: for each array of the IR, if it is ordered, how many elements it has
				 * and the number of the newest; then the locks (lock.h) */
	EBPF_MAP_ITERS,		/* array of buffers for iterations, which programs take and give back */
	EBPF_MAP_SYSCALLS,	/* array of struct ebpf_syscall by EBPF_SYSCALL_KEY: the program that handles a call */
	EBPF_MAP_STACKS,	/* hash by number: stacks that the tracer was sent recently */
	EBPF_MAP_RANGES,	/* hash by struct abi_process_key of struct abi_ranges, which the tracer fills */
	EBPF_MAP_UNWIND,	/* array of 1 struct abi_unwind, mmapable; the tracer fills it */
	EBPF_MAP_PYTHONS,	/* hash by struct abi_process_key of struct abi_python, which the tracer fills */
	EBPF_MAP_CODES,		/* hash by number: code objects that the tracer was sent recently */
	EBPF_MAP_VTIMES,	/* hash by struct task_struct: the last vtimestamp, the time spent in programs, whose they are */
	EBPF_MAP_KEPT,		/* hash by struct task_struct: the stacks of threads that left their CPU (gen_kept.c) ... */
	EBPF_MAP_KEEPS,		/* ... hash by process: whose are kept */
	EBPF_MAP_GILS,		/* hash by thread and probe: since when (rt/gil.c) */
	EBPF_MAP_NAMES,		/* hash by pattern, module and function (rt/named.h): the indexes of entries for functions that were matched */
	EBPF_MAP_COSTS,		/* hash by process of struct ebpf_cost; the tracer removes what it has read */
	EBPF_MAP_CALLS,		/* program array of 1, empty; each program that names it has its own (gen_flow.c,
				 * gen_own_stack) */
	EBPF_MAP_FIRST,
};

/* The argument after those of the provider for system calls: the call's number. */
enum { EBPF_TP_ENTRY_NUMBER = 6, EBPF_TP_EXIT_NUMBER = 3 };

enum { EBPF_SYSCALLS = 1024 };	/* more than exist */
#define EBPF_SYSCALL_KEY(NUMBER, IS_EXIT) ((NUMBER) + ((IS_EXIT) ? EBPF_SYSCALLS : 0))

struct ebpf_syscall {
	uint32_t group;		/* the program that runs for it; 0: none */
	uint32_t section;	/* ... and which section of it */
	uint32_t probe;		/* the probe's index */
};

/* What programs have cost a process, with their hooks. */
struct ebpf_cost {
	uint64_t events, spent_ns;
};

/* Sizes that the session's options decide. */
struct ebpf_sizes {
	uint32_t bufsize;	/* bytes of the ring buffer, a power of two of pages */
	uint32_t aggsize;	/* bytes for the keys and values of one aggregation */
	uint32_t dynvarsize;	/* bytes for the elements of one array and for the thread-local variables */
	uint32_t nprobes;	/* entries of the probe table */
	uint32_t nnamed;	/* ... and more of them that a traced process fills (abi_data.named), or programs in the kernel */
	uint32_t ncpus;		/* possible CPUs; 0: unknown */
	bool syscalls;		/* system calls are traced */
	bool uninterrupted;	/* there are probes that may fire with interrupts off: other tracepoints of the kernel */
	bool gil;		/* there are probes of an interpreter's lock */
	bool switched;		/* clauses ask for stacks of the thread that gets the CPU */
	bool costs;		/* programs in the kernel sum up what they cost (ebpf_env.hook_ns) */
	bool unwind;		/* native stacks are walked by the tables of abi/unwind.h, where they exist */
};

struct ebpf_map {
	enum bpf_map_type type;
	uint32_t key_size, value_size, max_entries, map_flags;
	const void *init;	/* RODATA: value_size bytes; else NULL */
	const uint32_t *inner;	/* of type BPF_MAP_TYPE_ARRAY_OF_MAPS: the max_entries maps in it; for the kernel alone */
	char name[BPF_OBJ_NAME_LEN];
};

/* What is shared by all programs of one IR program: map numbers, string constants, variable offsets. */
struct ebpf_unit {
	const struct ir_prog *prog;
	struct ebpf_map *maps;	/* a map of type BPF_MAP_TYPE_UNSPEC is not needed by this program */
	uint32_t nmaps;
	uint32_t nnamed;	/* as in struct ebpf_sizes */
	bool asks_values;	/* clauses read values of the traced language: the agent must be ready for that ... */
	bool asks_tasks;	/* ... and for its tasks */
	bool is_for_target;	/* an operation can run in the traced process alone */
	bool is_apart;		/* no clause uses what others write more than once (bpf/lock.h) */
	const struct ebpf_private *priv;
};

/*
 * Lay out @prog.  The unit lives in the program's arena.  NULL and a message at *err when it cannot be done
 * (too many variables for one map ...).
 */
struct ebpf_unit *ebpf_unit_new(const struct ir_prog *prog, const struct ebpf_sizes *sizes, const char **err);

/*
 * The maps that hold an aggregation or an associative array: one per key size class (ir/layout.h), from map number
 * *first on; returns how many.
 */
unsigned int ebpf_agg_maps(const struct ebpf_unit *u, const struct ir_agg *g, uint32_t *first);
unsigned int ebpf_map_maps(const struct ebpf_unit *u, const struct ir_map *m, uint32_t *first);

/*
 * Programs in the kernel enter fewer functions in the probe table, which is memory of the kernel's: the last entries of
 * EBPF_MAP_PROBES are not used there.
 */
enum { EBPF_NAMED_MAX = 8192 };

/* --- programs ---------------------------------------------------------------------------------------- */

struct ebpf_reloc {
	uint32_t insn;		/* an ld_imm64 whose imm takes the map's fd */
	uint32_t map;
};

/* From instructions back to the script: sorted by insn; each entry is valid up to the next. */
struct ebpf_line {
	uint32_t insn, clause;
	struct src_pos pos;
};

/*
 * A function that the verifier can check once for all calls: it relies only on the kinds of its parameters, the first
 * in R1, and returns a number.
 */
enum { EBPF_PARAMS = 5 };

struct ebpf_param {
	enum ebpf_param_kind {
		EBPF_PARAM_NUMBER,
		EBPF_PARAM_ANY,		/* any address, which is only read from */
		EBPF_PARAM_MEMORY,	/* the address of size bytes that may be read and written */
	} kind;
	uint32_t size;
};

struct ebpf_func {
	uint32_t insn;			/* its first instruction */
	const char *name;
	unsigned int nparams;
	struct ebpf_param params[EBPF_PARAMS];
};

struct ebpf_prog {
	enum bpf_prog_type type;
	bool sleepable;
	struct bpf_insn *insns;
	uint32_t ninsns;
	struct ebpf_reloc *relocs;
	uint32_t nrelocs;
	struct ebpf_line *lines;
	uint32_t nlines;
	struct ebpf_func *funcs;	/* sorted by insn */
	uint32_t nfuncs;
};

/*
 * The program that runs @clauses in order, and @errors (the ERROR clauses) when one of them faults.  It
 * lives in the IR program's arena.  NULL and a message at *err when a clause cannot be expressed (too much
 * scratch ...).
 */
struct ebpf_prog *ebpf_compile(const struct ebpf_unit *u, const struct ebpf_env *env,
			       struct ir_clause *const *clauses, unsigned int nclauses,
			       struct ir_clause *const *errors, unsigned int nerrors, const char **err);

/*
 * The same for system calls that run different clauses but share a program: the verifier takes long for what all
 * programs have, the start, the end and the functions.  A firing runs one section, that which EBPF_MAP_SYSCALLS names.
 */
struct ebpf_section {
	struct ir_clause *const *clauses;
	unsigned int n;
};

struct ebpf_prog *ebpf_compile_sections(const struct ebpf_unit *u, const struct ebpf_env *env,
					const struct ebpf_section *sections, unsigned int nsections,
					struct ir_clause *const *errors, unsigned int nerrors, const char **err);

/* Instructions of the IR in the clauses of @s: how long its program will be, roughly. */
uint32_t ebpf_section_size(const struct ebpf_section *s);

/*
 * The program for the tracepoint sched_process_exec that asks the tracer about each new process (abi/python.h), for a
 * unit whose stacks have Python frames: so the process is known before it runs Python code.
 */
struct ebpf_prog *ebpf_compile_ask(const struct ebpf_unit *u, const struct ebpf_env *env, const char **err);

/*
 * The program for the tracepoint sched_switch that keeps stacks of threads that leave their CPU, for a unit with
 * struct ebpf_sizes's switched.
 */
struct ebpf_prog *ebpf_compile_keep(const struct ebpf_unit *u, const struct ebpf_env *env, const char **err);

/*
 * Is @c only a count with one string of an argument as its key, @[copyinstr(argN)] = count()?  Then a marker in a
 * process can do it without the program: N, the first of the maps and how many there are.
 */
bool ebpf_is_count(const struct ebpf_unit *u, const struct ir_clause *c, uint32_t *arg, uint32_t *map,
		   unsigned int *classes);

/*
 * Is @c only a count whose keys follow from the process and from arguments 0 and 1, file and name of a code object,
 * @[pid, basename(copyinstr(arg0)), copyinstr(arg1)] = count()?  Then a marker can count again, for the same code object, in the
 * element that the program has found.  Without keys there is but one.
 */
bool ebpf_is_count_by_code(const struct ebpf_unit *u, const struct ir_clause *c, uint32_t *map, unsigned int *classes);

/*
 * What @c does, if that can be said in a few words (abi/segment.h, enum abi_known): then a marker in a process can do it without
 * the program.
 */
struct ebpf_known {
	enum abi_known what;
	/* Laps and spans (lap.c). */
	uint32_t map;			/* of the aggregation, if there is one: the first */
	uint32_t classes;		/* the number of maps, if it has keys that follow from the code; else 0 */
	uint32_t threads, last;		/* the map of thread variables, and in its value the offset of the last time */
	uint32_t frames;		/* at most so many in a stack; STOP: enum abi_stop, with ABI_STOP_KEEPS */
	/* RECORD (known.c). */
	uint32_t rec, fields, nfields, strsize;	/* as in struct abi_fire */
};
struct ebpf_known ebpf_known(const struct ebpf_unit *u, const struct ir_clause *c);

/*
 * The values that @clauses ask for, in an array of the unit's arena.  NULL and a message at *err, with the place in the script, if
 * one cannot be asked for at the event, before the program runs: it depends on more than the event and constants.
 */
struct ebpf_wanted *ebpf_wanted(const struct ebpf_unit *u, struct ir_clause *const *clauses, uint32_t nclauses, uint32_t *n,
				const char **err);

/* The instruction that @insn belongs to in the script, or NULL. */
const struct ebpf_line *ebpf_line_find(const struct ebpf_prog *p, uint32_t insn);

/* One instruction a line, "  12: r1 = *(u64 *)(r6 + 112)": for -x bytecode and tests. */
void ebpf_disasm(const struct ebpf_prog *p, struct strbuf *out);

#endif
