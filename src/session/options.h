/*
 * A session's options: options.def as a structure, and values as users write them.
 *
 * Values have three sources: the command line takes precedence over the script, the script over the default.
 */
#ifndef DTAP_SESSION_OPTIONS_H
#define DTAP_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct strbuf;

enum option_id {
#define OPTION(name, ...) OPT_##name,
#include "session/options.def"
#undef OPTION
	OPT_MAX
};

enum option_from { OPTION_DEFAULT, OPTION_SCRIPT, OPTION_COMMAND };

struct options {
	int64_t v[OPT_MAX];		/* BOOL 0 or 1, SIZE bytes, RATE ns, INT */
	char text[OPT_MAX][256];		/* TEXT, cut */
	enum option_from from[OPT_MAX];
};

/* All defaults. */
void options_init(struct options *o);

/*
 * Set @name to @value (NULL: none given).  0, also if a setting with precedence over @from stays; -ENOENT for an
 * unknown name, -ENOTSUP for one that only other DTraces have and -EINVAL for an invalid value, with a sentence for
 * the user in @err.
 */
int options_set(struct options *o, const char *name, const char *value, enum option_from from,
		struct strbuf *err);

/* Can setopt() change the option @name while the script runs?  True for unknown names, too. */
bool option_is_dynamic(const char *name);

/*
 * Set options from environment variables DTRACE_OPT_NAME=value, like the command line, and debug for DTRACE_DEBUG.  Returns as options_set(); the
 * sentence also names the variable.
 */
int options_from_environment(struct options *o, char *const *environ, struct strbuf *err);

/* Values as users write them: "4m" in bytes; "10ms" or "20hz" in ns, of 0 the least, 1.  0 or -EINVAL. */
int option_size(const char *s, int64_t *bytes);
int option_rate(const char *s, int64_t *ns);

/* The row of options.def: its name, and what it does. */
const char *option_name(enum option_id id);
const char *option_what(enum option_id id);

#endif
