/*
 * What the files of the library share: the run, and the interface of a language to it.
 *
 * dtap.c has the steps and their common parts; d.c and stp.c have the parts that differ, behind struct lib_language.
 * Functions return 0 or a negative errno; the reason was then given to the caller's message().
 */
#ifndef DTAP_LIB_LIB_H
#define DTAP_LIB_LIB_H

#include "dtap.h"

#include "base/strbuf.h"
#include "lang/diag.h"
#include "out/sink.h"
#include "session/options.h"
#include "session/session.h"
#include "session/supply.h"

struct arena;
struct dialect;
struct ir_prog;
struct probe_set;
struct source;
struct target;
struct target_preload;

struct lib_script {
	enum dtap_script_kind kind;
	const char *text;
	const struct source *src;	/* NULL until it is read */
};

/* Is it a whole script, not a description from a command line? */
static inline bool lib_is_script(const struct lib_script *s)
{
	return s->kind == DTAP_FILE || s->kind == DTAP_TEXT || s->kind == DTAP_MORE_TEXT;
}

/* Strings that the caller has given, in order. */
struct lib_texts {
	const char **v;
	size_t n, cap;
};

enum lib_step { LIB_NEW, LIB_PARSED, LIB_CHECKED, LIB_TRANSLATED, LIB_ENABLED, LIB_STARTED, LIB_FINISHED };

struct dtap {
	/* The caller's settings. */
	struct dtap_conf conf;
	struct dtap_stap stap;
	enum dtap_purpose purpose;
	bool print_aggregations;
	bool read_globals;
	struct options set;
	struct lib_script *scripts;
	size_t nscripts, scripts_cap;
	struct lib_texts args, libraries, limits, globals, cpp;
	const char *command;
	pid_t *pids;
	size_t npids, pids_cap;
	enum dtap_select select;
	uid_t user;

	/* The run's own. */
	enum lib_step step;
	bool said;			/* an error was reported: the caller knows why a step failed */
	const struct lib_language *lang;
	void *state;			/* the language's */
	struct arena *arena;
	struct diag diag;
	struct probe_set *probes;
	struct supply *supply;
	struct target **targets;	/* the command first */
	size_t ntargets;
	struct target *watched;		/* not traced; its end is reported (stap -x); or NULL */
	struct ir_prog *prog;
	int output_fd;			/* the caller's, -1: none */
	struct out_sink out;
	struct session *session;
	struct budget *budget;		/* or NULL */
	int stop_fd;			/* dtap_stop()'s eventfd */
	const char *sampler;		/* D: a probe that fires only for what is on a CPU, or NULL */
	uint64_t *cpu_ticks;		/* of each target at the start */
	struct strbuf log, code;	/* for the options verifierlog, bytecode */
	struct strbuf text;		/* what dtap_text() and dtap_list() returned last */
	struct lib_values *values;	/* of values.c: the record that is being passed to conf.record */
};

struct lib_language {
	const char *command;		/* the command whose wording messages follow */
	const char *version;		/* of the language */
	const char *prefix, *note;	/* the start of an error, of a note */
	bool grabs;			/* processes are targets; the command runs to its entry point before tracing */
	const struct dialect *dialect;
	int (*init)(struct dtap *t);	/* set t->state */
	void (*fini)(struct dtap *t);	/* t->state may be NULL */
	int (*parse)(struct dtap *t);
	int (*check)(struct dtap *t);
	int (*translate)(struct dtap *t);
	/* Before the session is created: fill in the language's fields of @conf. */
	int (*enable)(struct dtap *t, struct session_conf *conf);
	/* Report, in the language's wording, that an option cannot be set (-errno @e), or the command cannot be run. */
	void (*bad_option)(struct dtap *t, const char *name, const char *value, int e, const char *why);
	void (*bad_command)(struct dtap *t, const char *why);
	/* Are there notes about what the command does during the run? */
	bool (*is_talking)(const struct dtap *t);
	/* Append the line, if any, about a process that ended with @status (wait(2)); always if a signal ended it. */
	void (*ended)(struct dtap *t, const struct target *of, int status, struct strbuf *out);
	/* Everything is armed: report it. */
	void (*armed)(struct dtap *t);
	int (*text)(struct dtap *t, enum dtap_what what, struct strbuf *out);	/* -EINVAL: not this one */
	size_t (*count)(const struct dtap *t, enum dtap_count what);
	size_t (*list)(struct dtap *t, bool verbose, struct strbuf *out);	/* descriptions without a match */
};

extern const struct lib_language lib_d, lib_stp;

/* --- dtap.c -------------------------------------------------------------------------------------------- */

/* Pass @text, complete lines, to the caller. */
void lib_message(struct dtap *t, enum dtap_level level, const char *text);

/* A line about the progress: "# dtrace: TEXT". */
void lib_note(struct dtap *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Report that @n processes (@one: singular, @many: plural) cannot get the agent; @why: the first one's reason. */
void lib_say_missed(struct dtap *t, unsigned int n, const char *one, const char *many, const char *why);

/* A line that starts with the language's error prefix. */
void lib_error(struct dtap *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same with the text in @err, which is released.  Returns @e. */
int lib_fail(struct dtap *t, int e, struct strbuf *err);

/* The same unless @e is 0, or -EINTR: the user asked for the end and needs no message. */
int lib_done(struct dtap *t, int e, struct strbuf *err);

/* Start the command and attach to the processes.  @preload as for target_create. */
int lib_open_targets(struct dtap *t, const struct target_preload *preload);

/* For struct supply_conf.message, with the struct dtap. */
void lib_agent_message(void *t, const char *text);

/* For struct supply_conf.selects, with the struct dtap: does dtap_select() include @pid? */
bool lib_is_selected(void *t, uint32_t pid);

/* For struct supply_conf.process, with the struct dtap. */
void lib_agent_process(void *t, enum supply_fate fate, uint32_t pid, const char *why);

void lib_add_text(struct dtap *t, struct lib_texts *to, const char *text);

/* --- share.c ------------------------------------------------------------------------------------------- */

/* Folder @what of dtap's shared files: in conf.share if set, else installed or in the source tree; NULL: none. */
const char *lib_share(struct dtap *t, const char *what);

/* --- values.c ------------------------------------------------------------------------------------------ */

/* Make the session of @conf pass its records to the caller's function. */
int lib_values_new(struct dtap *t, struct session_conf *conf);
void lib_values_free(struct lib_values *v);	/* accepts NULL */

#endif
