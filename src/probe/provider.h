/*
 * What a provider is, and what probe/ offers to providers.  Includers are files of probe/ only.
 *
 * To add one: probe/NAME.c with `const struct provider provider_NAME`, and a row in providers.def.
 */
#ifndef DTAP_PROBE_PROVIDER_H
#define DTAP_PROBE_PROVIDER_H

#include "probe/probe.h"

struct arena;
struct module;
struct python_hopes;
struct strbuf;

/* One probe_find on its way through the providers. */
struct finding {
	struct probe_set *set;
	const struct probe_desc *desc;
	enum probe_want want;
	struct probe_list *out;
	size_t before;			/* out->n at its start */
};

struct provider {
	/* Put the probes that f->desc describes into the set and, by found_add, into the answer. */
	void (*find)(struct finding *f);
};

/*
 * The set's probe with the names and the pid of @key, made of @key when it is new (names are copied, the id
 * is given, sites and signature are then to be filled: *made).
 */
struct probe *set_probe(struct probe_set *set, const struct probe *key, bool *made);

/* The set's site equal to @key, made of it when it is new; path and args_text must already be the set's. */
struct site *set_site(struct probe_set *set, const struct site *key);

/* Add @s to the sites of @p, unless it is one of them. */
void probe_add_site(struct probe_set *set, struct probe *p, struct site *s);

struct arena *set_arena(struct probe_set *set);

/* The files seen so far: module.c's. */
struct module **set_modules(struct probe_set *set);

/* The choice for Python's markers, and the agent's object, or NULL: there is none, or none is wanted. */
enum python_mode set_python_mode(const struct probe_set *set);
struct module *set_agent(struct probe_set *set);

/* What programs have turned out to be (python.c). */
struct python_hopes **set_hopes(struct probe_set *set);

/* Remember that the agent supplies marker @name (the set's) of an interpreter. */
void set_supplies(struct probe_set *set, uint16_t version, const char *name);

struct ktypes;
struct program_types;

/* The target's number, or 0; types of its program, to be closed with the set. */
uint32_t set_program(const struct probe_set *set);
void set_keep(struct probe_set *set, struct program_types *p);

/* The kernel's types, read when first asked for.  NULL: there are none, and set_why says so. */
struct ktypes *set_ktypes(struct probe_set *set);

/* The number of system call @name, or -1 (syscall.c). */
int syscall_number(const char *name);

struct obj;
struct pid_file;

/*
 * Walking a stack from a function's first instruction misses the caller, since the frame is not set up yet.  Does the
 * kernel that runs find it nevertheless, at @off of @o?
 */
bool pid_is_walked(const struct obj *o, uint64_t off);

/* The files whose functions were read: pid.c's. */
struct pid_file **set_pid_files(struct probe_set *set);

/* Where to say why something was not found. */
struct strbuf *set_why(struct probe_set *set);

/* Put @p into the answer, unless it is there already. */
void found_add(struct finding *f, struct probe *p);

/* Does the description match these names? */
bool found_match(const struct finding *f, const char *prov, const char *mod, const char *func, const char *name);

#endif
