/*
 * Shared by the files of session/.
 */
#ifndef DTAP_SESSION_PRIVATE_H
#define DTAP_SESSION_PRIVATE_H

#include "abi/record.h"
#include "base/strbuf.h"
#include "bpf/ebpf.h"
#include "out/agg.h"
#include "out/error.h"
#include "out/trace.h"
#include "place/btf.h"
#include "place/place.h"
#include "probe/probe.h"
#include "session/aggs.h"
#include "session/session.h"
#include "session/spec.h"
#include "session/stream.h"

/* A probe that clauses are enabled on; its index in the session's table is the attach cookie. */
struct enabled {
	const struct probe *probe;
	struct ir_clause **clauses;	/* in the script's order */
	uint32_t nclauses;
	size_t cap;
	uint32_t epid;			/* of the first clause */
	int prog;			/* BEGIN, END, tick: the program to run; else -1 */
	uint32_t narmed;		/* SITES: how many of its sites are armed in the kernel */
	const struct ebpf_wanted *wanted;	/* FUNCTION in the kernel: values that the clauses ask for */
	uint32_t nwanted;
};

enum { BUF_CPUS = 256 };		/* number of per-CPU counters; further CPUs share them */

struct termios;

/* Something with a descriptor that wakes the loop. */
struct source_fd {
	int fd;
	bool owned;			/* closed with the session */
	void (*ready)(struct session *s, struct source_fd *src);
	struct enabled *tick;		/* for a timer */
	struct target *target;		/* for a target's end */
	void (*other)(void *ctx);	/* for the owner's */
	void *ctx;
};

/*
 * The parts of a session.  Each belongs to one file.  Only that file writes it, and all files may read it, unless the
 * comment says otherwise.
 */

/* Of enable.c: the probes that clauses are enabled on.  arm.c sets their programs. */
struct enabled_probes {
	struct enabled *v;
	uint32_t n;
	size_t cap;
	uint32_t later;			/* entries reserved for what is loaded later; 0: not looked for */
	bool libraries, programs;	/* then: by processes that are named; markers of programs that start later */
	struct newcomers *newcomers;	/* programs: those that have started */
	struct ir_clause **errors;	/* the ERROR clauses */
	uint32_t nerrors;
	uint32_t error_probe;		/* ERROR's index in the table, if nerrors is not 0 */
};

/* Private to fired.c: probes of functions that matched patterns, by their index after the table's own. */
struct met_functions {
	struct probe **v;
	size_t cap;
};

/* Private to choose.c: the choice of a place.  The place itself is s->place. */
struct place_choice {
	bool is_made, in_target;
	bool may_move;			/* the session may still move to the kernel place */
	struct strbuf why;		/* the reason for the choice */
};

/* Private to arm.c: what the program uses (session_find_uses). */
struct program_uses {
	uint64_t builtins;		/* a bit for each IR_B_... */
	uint32_t effects;		/* of all its instructions: enum ir_effect */
};

/* Private to arm.c: facts about the kernel for programs.  session.c sets the pid namespace. */
struct kernel_facts {
	bool pid_ns;			/* this process is in another than the initial pid namespace ... */
	uint64_t ns_dev, ns_ino;	/* ... of this device and inode ... */
	uint32_t ns_level;		/* ... in so many others; with @task; 0: not known */
	struct btf_task task;
	struct ksyms *ksyms;		/* NULL: not needed so far */
};

/* Of know.c: names for the numbers and addresses in records.  session.c creates both at the start if needed. */
struct known_names {
	struct symbols *symbols;	/* of addresses, private to know.c; or NULL */
	struct names *names;		/* the stacks behind numbers; or NULL */
	unsigned int nasked;		/* requests about processes that were answered with "not yet" */
	int log_fd;			/* for session_followed(); -1: none */
};

/* Of buffer.c: records between the place and their actions.  session.c sets policy and max; fire.c reads the length. */
struct held_records {
	struct stream stream;
	enum { BUF_SWITCH, BUF_RING, BUF_FILL } policy;
	size_t max;			/* RING: at more bytes the oldest records are removed */
	bool released;			/* END has been fired: held records are now processed */
	uint64_t filled[BUF_CPUS];	/* FILL: bytes of each CPU's records so far */
};

/* Of events.c: the loop and what wakes it.  session.c creates epoll and waits for it; know.c reads the targets. */
struct event_loop {
	int epoll;
	struct source_fd **sources;
	size_t n, cap;
	struct source_fd *switcher, *teller;	/* the timers of switchrate and statusrate */
	int64_t quick_ns;			/* the switcher's period at the start; 0: it is switchrate */
	struct termios *terminal;		/* what standard input's was like, to set again; or NULL */
	unsigned int targets;		/* still running */
};

/* Private to records.c: losses that were reported, and losses still to report. */
struct losses {
	uint64_t drops[ABI_DROP_MAX];	/* counted by programs, reported so far */
	uint64_t bad;			/* the same for invalid data */
	uint64_t nfull, nbad;		/* to report, counted by buffer.c: records without room, invalid records */
	uint64_t spec_busy;		/* to report: refused speculations */
	uint64_t nnameless;		/* to report, counted by know.c: stacks, code objects without room for names */
	uint64_t nrests;		/* the same, counted by spend.c: processes that were not traced for a while */
	bool interpreted;		/* it was reported that a process interprets its programs */
};

/* The form of the output.  session.c chooses the form and initialises lines, which setopt() (records.c) changes. */
struct output {
	const struct form *form;
	struct out_lines lines;		/* of form_text.c: what precedes records without -q; records.c reads quiet */
	struct out_doc *doc;		/* of structured.c, if the form is a document */
	uint64_t told[OUT_DROP_MAX];	/* of structured.c: losses in the document so far */
};

/* Private to faults.c, for dialects that count them. */
struct fault_counts {
	uint64_t n, nskipped;		/* errors, and handlers that could not run */
};

/* Private to domains.c: processes of other trust domains. */
struct other_domains {
	session_peers_fn *each;		/* or NULL */
	void *ctx;
	uint64_t nrefused;		/* actions that were not carried out for them */
};

/* Private to spend.c. */
struct spending {
	struct budget *budget;		/* NULL: none */
	session_rest_fn *rest;		/* or NULL */
	void *rest_ctx;
	struct place_cost *costs;	/* since the last look */
	size_t ncosts, costs_cap;
	uint64_t drain_from_ns, drained_ns;	/* this thread's CPU time for records, since the last look */
	bool has_records;		/* there were some since session_spend_begin(); set by buffer.c */
	uint64_t looked_ns;
	bool all_rest;			/* the place rests, for all processes */
	struct session_cost sum;
};

/* Private to times.c: both clocks at the start. */
struct began {
	uint64_t cycles, ns;
};

/*
 * The end of the session, set by the file that finds a reason: session.c, events.c, buffer.c, faults.c, records.c.  The
 * first error is kept, and nothing more is done after it.
 */
struct finish {
	bool is_due;			/* exit(), a signal, the targets' end */
	bool end_fires;			/* END is being fired; set by session.c */
	bool exited;			/* by exit(); set by records.c */
	int status;
	int error;			/* negative errno that ended the session */
};

struct session {
	/* Set by session_new(); conf.opts points to this copy of opts, which setopt() changes. */
	struct session_conf conf;
	struct options opts;
	struct arena *arena;		/* the program's */
	struct ebpf_unit *unit;
	/* Created by choose.c (the place) and session.c (the others). */
	struct place *place;
	struct place *away;		/* of arm.c: what tells the agents of functions by name for programs in the kernel; or NULL */
	struct aggs *aggs;
	struct specs *specs;		/* records of speculations */

	struct enabled_probes on;
	struct met_functions met;
	struct place_choice choice;
	struct program_uses uses;
	struct kernel_facts kernel;
	struct known_names known;
	struct held_records held;
	struct event_loop loop;
	struct losses losses;
	struct output output;
	struct fault_counts faults;
	struct other_domains others;
	struct spending spending;
	struct began began;
	struct finish finish;
};

/* enable.c: find each clause's probes and number them. */
int session_match(struct session *s, struct strbuf *err);

/*
 * enable.c: the same for probes of libraries that were loaded since, or, if @pid is not 0, for those of this new process.
 * Returns the index of the first new one; others may have got sites.
 */
uint32_t session_match_again(struct session *s, uint32_t pid);

/*
 * fired.c: resolve index @probe of a record: the entry whose clauses ran, and the probe that fired, which has other
 * names if a pattern matched a function.  False: invalid.
 */
bool session_fired(struct session *s, uint32_t probe, const struct enabled **en, const struct probe **fired);

/* arm.c: does the script use @bi?  session_find_uses() finds out at the start of the session. */
bool session_uses(const struct session *s, enum ir_builtin bi);
void session_find_uses(struct session *s);

/*
 * arm.c: is @en a tick-N whose clauses ask for the thread at hand (pid, execname, curthread, stack() ...)?  In the kernel it
 * is a clock of one CPU then, and the thread is what runs there, as in DTrace.  All others are fired by the tracer.
 */
bool session_interrupts(const struct session *s, const struct enabled *en);

/* arm.c: can @p, functions of Python by name, be more than one function? */
bool session_is_pattern(const struct probe *p);

/* arm.c: session_enable() in the current place. */
int session_arm(struct session *s, struct strbuf *err);

/* choose.c: choose a place and create it as s->place. */
int session_new_place(struct session *s, struct strbuf *err);

/*
 * choose.c: the place has refused with @err: can the session move to another one?  Then @err is cleared, and there is
 * no place until session_new_place().
 */
bool session_move(struct session *s, struct strbuf *err);

/* choose.c: does the tracer itself fire @p? */
bool session_is_tracers(const struct probe *p);

/* domains.c: the name of a variable that programs of events share, or NULL. */
const char *session_shared(const struct session *s);

/*
 * domains.c: are there processes of different trust domains that would share a variable?  Processes of another domain
 * than the tracer's, for which an action of the script would not be carried out?  Then @why says which.
 */
bool session_spans(const struct session *s, struct strbuf *why);
bool session_acts_for_others(const struct session *s, struct strbuf *why);

/* domains.c: may @act of @rec be done?  Refusals are counted, and reported the first time and at the end. */
bool session_may_act(struct session *s, const struct record *rec, const struct ir_act *act);
void session_report_refused(struct session *s);

/* choose.c: -x showplace. */
void session_say_place(struct session *s);

/* The most functions of libraries loaded later that can be traced. */
enum { LATER_PROBES = 4096 };

/* arm.c: look for functions of libraries that were loaded since, and arm them.  0, or a negative errno. */
int session_look_again(struct session *s);

/* arm.c: from now on trace the markers of programs that start, if the script has a pattern for them. */
int session_watch_programs(struct session *s, struct strbuf *err);

/* records.c: run a record's actions; @next: the record after it, or NULL.  0 or a negative errno: the output failed. */
int session_record(struct session *s, const struct record *rec, const struct record *next);

/* report.c: keep the @keep largest values of @g (negative: that many smallest) and remove the other keys. */
int session_trunc_agg(struct session *s, const struct ir_agg *g, int64_t keep);

/* report.c: print the aggregations that the script did not print itself. */
int session_print_aggs(struct session *s);

/* records.c: a line for the user, "dtrace: ...". */
void session_warn(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* records.c: report what was lost since the last call. */
void session_report_drops(struct session *s);

/* faults.c: pass @text to the user and close it. */
void session_tell(struct session *s, struct out_sink *text);

/* faults.c: a clause faulted; the script warns; @n more things of @kind (enum abi_drop or out_drop) were lost. */
void session_fault(struct session *s, const struct out_fault *f);
void session_say_warning(struct session *s, const char *warning);
void session_lost(struct session *s, unsigned int kind, uint64_t n);

/* faults.c: did faults or skipped clauses end the session?  And the report about them at the end. */
bool session_failed(const struct session *s);
void session_summary(struct session *s);

/* times.c: stap -t.  Print what handlers have measured since the start.  0, or a negative errno. */
void session_times_start(struct session *s);
int session_times_print(struct session *s);

/* session.c: set what programs may do from now on. */
void session_set_state(struct session *s, enum abi_state state);

/* session.c: update the offset of the scheduler's clock, which drifts from CLOCK_MONOTONIC (vtimestamp). */
void session_keep_clock(struct session *s);

/*
 * events.c: if there are probes of standard input: what is typed on a terminal arrives at once, and is not shown by the
 * terminal, until the loop is closed.
 */
void session_watch_keys(struct session *s);

/* events.c: add all sources of events to the loop.  0 or a negative errno. */
int session_add_sources(struct session *s);

/* events.c: close the loop and the descriptors that it owns. */
void event_loop_close(struct event_loop *l);

/* events.c: the options switchrate and statusrate may have changed. */
void session_set_rates(struct session *s);

/* know.c: before anything fires, send the data of running Pythons, unless only targets are traced. */
void session_know_pythons(struct session *s);

/* know.c: handle @rec, a stack, a code object or a request (ABI_REC_CODE to ABI_REC_STACK).  0 or a negative errno. */
int session_name_record(struct session *s, const struct record *rec);

/*
 * know.c, for a program with stacks: follow what processes map from now on, so that addresses in those that end at once have
 * names.  known_names.log_fd becomes readable when session_followed() is to be called.
 */
void session_follow(struct session *s);
void session_followed(struct session *s);

/* The most bytes of held records; then the kernel's buffer fills, and records that do not fit are drops. */
enum { HELD_MAX_BYTES = 8 << 20 };

/* buffer.c: take records from the place and hold them.  0 or a negative errno. */
int session_pull(void *session);

/* fire.c: run the program of @en, which only the tracer fires. */
void session_notice_exit(struct session *s);	/* events.c */
int session_fire(struct session *s, const struct enabled *en, const uint64_t args[10]);
bool session_loops(const struct session *s);	/* does such a program have a loop? */

/*
 * spend.c: begin and end to be bounded by the budget; before and after records are taken; look at what was spent, if it is
 * time.
 */
void session_spend_open(struct session *s);
void session_spend_close(struct session *s);
void session_spend_begin(struct session *s);
void session_spend_end(struct session *s);
void session_spend(struct session *s);

/* buffer.c: the same, then process those that are due; all of them if @last. */
int session_drain(struct session *s, bool last);

/* buffer.c: END has fired: process the held records that the policy keeps. */
int session_drain_rest(struct session *s);

#endif
