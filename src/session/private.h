/*
 * What the files of session/ share.
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
};

enum { BUF_CPUS = 256 };		/* what is counted per CPU; further ones share */

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

struct session {
	struct session_conf conf;
	struct options opts;		/* conf.opts is this copy, which setopt() changes */
	struct arena *arena;		/* the program's */
	struct ebpf_unit *unit;
	struct place *place;
	bool place_chosen, in_target;	/* choose.c's: of those two */
	bool may_move;			/* it may still go to the kernel place */
	struct strbuf why;		/* it is that place */
	bool told_interpreted;
	struct aggs *aggs;
	struct specs *specs;		/* records of speculations */
	uint64_t spec_busy;		/* speculations refused, not reported yet */
	struct names *names;		/* what numbers of stacks stand for */
	unsigned int nasked;		/* questions about processes that were answered with "not yet" */
	struct stream stream;
	enum { BUF_SWITCH, BUF_RING, BUF_FILL } policy;
	bool ended;			/* END is being fired */
	size_t held_max;		/* RING: bytes after which the oldest are looked for */
	bool closing;			/* END has been fired: what is held back is carried out now */
	uint64_t filled[BUF_CPUS];	/* FILL: bytes of each CPU's records so far */
	struct source_fd *switcher, *teller;	/* the timers of switchrate and statusrate */
	struct enabled *enabled;
	uint32_t nenabled;
	size_t enabled_cap;
	uint32_t later;			/* entries of the table for libraries that are loaded later; 0: none are looked for */
	struct ir_clause **errors;	/* the ERROR clauses */
	uint32_t nerrors;
	uint32_t error_probe;		/* ERROR's index in the table, when there are some */
	uint64_t uses;			/* a bit for each IR_B_... that the program has */
	bool pid_ns;			/* this process is in a pid namespace, of this device and inode */
	uint64_t ns_dev, ns_ino;
	struct btf_task task;
	struct ksyms *ksyms;		/* NULL: not needed so far */
	int epoll;
	struct source_fd **sources;
	size_t nsources, sources_cap;
	unsigned int targets;		/* still running */
	bool ending;			/* exit(), a signal, the targets' end */
	uint64_t nfaults, nskipped;	/* SystemTap's errors, and handlers that could not run */
	uint64_t began_cycles, began_ns;	/* times.c */
	bool exited;			/* by exit(), the first of which says the status */
	int status;
	int error;			/* negative errno that ended the session */
	uint64_t drops[ABI_DROP_MAX];	/* reported so far */
	struct out_doc *doc;		/* the output as a document (oformat); NULL: text */
	uint64_t told[OUT_DROP_MAX];	/* losses in it so far */
	struct out_lines lines;		/* what goes in front of records without -q */
};

/* enable.c: find each clause's probes and number them. */
void session_match(struct session *s);

/* enable.c: the same for probes of libraries that were loaded meanwhile: the number of the first that is new. */
uint32_t session_match_again(struct session *s);

/* arm.c: does the script ask for @bi?  As session_find_uses() found when the session was made. */
bool session_uses(const struct session *s, enum ir_builtin bi);
void session_find_uses(struct session *s);

/* arm.c: session_enable() in the place that there is. */
int session_arm(struct session *s, struct strbuf *err);

/* choose.c: make s->place, the chosen one. */
int session_new_place(struct session *s, struct strbuf *err);

/*
 * choose.c: the place has refused with @err, which is taken: is there another one to try?  Then there is no place until
 * session_new_place().
 */
bool session_move(struct session *s, struct strbuf *err);

/* choose.c: -x showplace. */
void session_say_place(struct session *s);

/* How many functions of libraries that a process loads later can be traced. */
enum { LATER_PROBES = 4096 };

/* arm.c: look for functions of libraries that were loaded meanwhile, and arm them. 0, or a negative errno. */
int session_look_again(struct session *s);

/* records.c: carry out a record's actions.  0 or a negative errno: the output failed. */
int session_record(void *session, const void *rec, size_t size, const void *next);

/* report.c: print aggregations, with @fmt or (NULL) in columns; remember that they were printed. */
int session_print_agg(struct session *s, struct ir_agg *const *aggs, uint32_t n, const struct fmt *fmt);

/* report.c: keep the @keep largest values of @g, negative: that many smallest, and remove the other keys. */
int session_trunc_agg(struct session *s, const struct ir_agg *g, int64_t keep);

/* report.c: print the aggregations that the script did not print itself. */
int session_print_aggs(struct session *s);

/* records.c: a line for the user, "dtrace: ...". */
void session_warn(struct session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* records.c: tell of what was lost since the last time. */
void session_report_drops(struct session *s);

/* stap.c: SystemTap's error() and faults, and warn().  @values: the action's fields (ir/actions.def). */
void session_stap_error(struct session *s, const struct ir_value *values);
void session_stap_warn(struct session *s, const char *text);

/* stap.c: print the statistic of @m in @words (abi/stat.h) as the histogram it has; @newline: and an empty line. */
int session_stap_hist(struct session *s, const struct ir_map *m, const uint64_t *words, bool newline);

/* stap.c: @n more things of @kind were lost; and what is said of all that at the end. */
void session_stap_lost(struct session *s, enum abi_drop kind, uint64_t n);
void session_stap_summary(struct session *s);

/* times.c: stap -t.  The end prints what handlers have measured since the start; 0, or a negative errno. */
void session_times_start(struct session *s);
int session_times_print(struct session *s);

/* stap.c: did faults end the session? */
bool session_stap_failed(const struct session *s);

/*
 * structured.c: the output as a document.  A record's is one probe, open while its actions run; each action's values
 * or text are objects in it.
 */
int structured_begin(struct session *s);
void structured_end(struct session *s);
void structured_probe(struct session *s, uint32_t cpu, const struct probe *p);
void structured_probe_end(struct session *s);
void structured_values(struct session *s, const char *name, const struct ir_value *v, const struct ir_slot *slots, size_t n);
void structured_text(struct session *s, const char *name, const char *text);
void structured_symbol(struct session *s, uint64_t number, enum ir_show show);
int structured_agg(struct session *s, const struct out_agg *a, const struct out_agg_order *order);
int structured_last_agg(struct session *s, const struct out_agg *a, const struct out_agg_order *order);
void structured_drops(struct session *s, unsigned int kind, uint64_t n, uint64_t total);

/* session.c: what programs may do from now on. */
void session_set_state(struct session *s, enum abi_state state);

/* session.c: for vtimestamp: the scheduler's clock drifts apart from CLOCK_MONOTONIC. */
void session_keep_clock(struct session *s);

/* events.c: have the loop woken by all that is known now.  0 or a negative errno. */
int session_add_sources(struct session *s);

/* events.c: the options switchrate and statusrate may have changed. */
void session_set_rates(struct session *s);

/* know.c: before anything fires: tell of the Pythons that run, where targets are not all that there is. */
void session_know_pythons(struct session *s);

/* know.c: take @rec, a stack, a code object or a question (ABI_REC_CODE to ABI_REC_STACK).  0 or a negative errno. */
int session_name_record(struct session *s, const void *rec, size_t size);

/* Records held at once; then the buffer in the kernel is left to fill, and what does not fit is a drop. */
enum { HELD_MAX_BYTES = 8 << 20 };

/* buffer.c: take records from the place and hold them.  0 or a negative errno. */
int session_pull(void *session);

/* buffer.c: the same, and carry out those that are due; all of them if @last. */
int session_drain(struct session *s, bool last);

/* buffer.c: END has fired: carry out all that is held back, as far as it is to be kept. */
int session_drain_rest(struct session *s);

#endif
