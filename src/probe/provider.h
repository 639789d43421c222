/*
 * The interface of providers, and functions for them.  Private to probe/.
 *
 * To add one: probe/NAME.c with `const struct provider provider_NAME`, and a row in providers.def.
 */
#ifndef DTAP_PROBE_PROVIDER_H
#define DTAP_PROBE_PROVIDER_H

#include "probe/probe.h"

struct arena;
struct module;
struct modules;
struct python_cache;
struct python_seen;
struct strbuf;

/* The state of one probe_find. */
struct finding {
	struct probe_set *set;
	const struct probe_desc *desc;
	enum probe_want want;
	struct probe_list *out;
	size_t before;			/* out->n at its start */
};

struct provider {
	/* Add the probes that f->desc describes to the set and, by found_add, to the result. */
	void (*find)(struct finding *f);
	bool is_general;		/* its probes are the machine's: it looks at no process */
};

/*
 * The set's probe with the names and the pid of @key.  If it is new (*made), it is a copy of @key with copied names
 * and an id; the caller fills in sites and signature.
 */
struct probe *set_probe(struct probe_set *set, const struct probe *key, bool *made);

/* The set's site equal to @key, added if it is new; path and args_text must belong to the set already. */
struct site *set_site(struct probe_set *set, const struct site *key);

/* Add @s to the sites of @p, unless it is there. */
void probe_add_site(struct probe_set *set, struct probe *p, struct site *s);

struct arena *set_arena(struct probe_set *set);

/* The files of the processes that were looked at (module.h). */
struct modules *set_modules(struct probe_set *set);

/* The choice for Python's markers, and the agent's object or NULL. */
enum python_mode set_python_mode(const struct probe_set *set);
struct module *set_agent(struct probe_set *set);
/* The agent's object for musl, of which the caller is a user; NULL: there is none. */
struct module *set_agent_musl(struct probe_set *set);

/* The caches of probe_is_python and python_look_again (python.c). */
struct python_cache **set_python_cache(struct probe_set *set);
struct python_seen **set_python_seen(struct probe_set *set);
void python_seen_free(struct python_seen *seen);	/* not its modules */

/* Does a session use markers of Python that interpreters have themselves?  Not before set_use_own(). */
void set_use_own(struct probe_set *set);
bool set_uses_own(const struct probe_set *set);

/* The number of the present probe_hold(); 0: none. */
uint32_t set_hold(const struct probe_set *set);

/* Note that the agent supplies marker @name (a text of the set) of an interpreter. */
void set_supplies(struct probe_set *set, uint16_t version, const char *name);

struct ktypes;
struct program_types;

/* The target's pid, or 0; the types of its program, which are closed with the set. */
uint32_t set_program(const struct probe_set *set);
void set_keep(struct probe_set *set, struct program_types *p);

/* The kernel's types, read when first needed.  NULL: there are none; set_why has the reason. */
struct ktypes *set_ktypes(struct probe_set *set);

/* The number of system call @name, or -1 (syscall.c). */
int syscall_number(const char *name);

/* The name of system call @number, or NULL. */
const char *syscall_name(uint32_t number);

struct obj;
struct pid_file;

/*
 * A stack walk from a function's first instruction misses the caller, since the frame is not set up yet.  Does the
 * running kernel find it nevertheless, at @off of @o?
 */
bool pid_is_walked(const struct obj *o, uint64_t off);

/* The files whose functions were read, for pid.c. */
struct pid_file **set_pid_files(struct probe_set *set);
void pid_files_close(struct pid_file *pf);	/* close the files of the list */

/* The text for why something was not found. */
struct strbuf *set_why(struct probe_set *set);

/* A named process could not be looked at, by the negative errno @err.  That it has ended (-ESRCH, or 0) is no trouble. */
void set_trouble(struct probe_set *set, int err);

/* Add @p to the result, unless it is there. */
void found_add(struct finding *f, struct probe *p);

/* The process that searches of all processes are restricted to, or 0. */
uint32_t set_only(const struct probe_set *set);

/* Does the description match these names? */
bool found_match(const struct finding *f, const char *prov, const char *mod, const char *func, const char *name);

#endif
