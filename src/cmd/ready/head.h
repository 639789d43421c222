/*
 * A ready-made command: a D script whose first comment says what the command is.
 *
 * Lines of that comment that begin with @ are its head; the other lines are its description.
 *
 *	@summary: WORDS			what it does, for lists; required
 *	@output: FORM			how results are shown: table, events, distribution, tree, or functions (a table
 *					computed from a tree)
 *	@key: NAME TITLE KIND		the next part of the aggregations' keys
 *	@value: NAME TITLE KIND		the aggregation @NAME
 *	@level: NAME TITLE KIND		tables: the same, with -i since the start and not of the interval: what there is now
 *	@ratio: NAME TITLE KIND OF BY	the aggregation @OF divided by the aggregation @BY
 *	@rate: NAME TITLE KIND OF	tables: the aggregation @OF divided by the seconds that it took
 *	@field: NAME TITLE KIND		events: the next argument of printf(); distributions: of a record for each event
 *					that may be among the greatest, the first field says how great
 *					events: printf() of time, process, thread and a task's name in the probes
 *					task-step-begin and -end is no line, but in traces the task has a track
 *	@sort: NAME			the column by which tables are sorted, largest first; for functions: calls,
 *					self or total
 *	@live: SECONDS			functions: print a table at this interval; a terminal shows only the newest
 *	@functions: HOW			may or must FUNCTIONS be named: none (default), optional, required
 *	@needs: kernel			its probes are in the kernel, so it needs root; the script has a predicate
 *					"targeted", true in the selected processes
 *	@option: NAME KIND DEFAULT WORDS	an option of the command; the script gets its value as inline
 *					option_NAME, and as $1 (first option), $2 (second) ...
 *	@variant: NAME KIND WORDS	with the option NAME another script is the command: NAME.d in the folder that
 *					is called as the command and is beside its file.  Its head says of its own what
 *					it is; with KIND int it has an @option NAME, which gets the value
 *	@addition: NAME WORDS		with the option NAME that file's clauses come behind the script's, and its columns
 *					behind the script's own; option_NAME is then 1, else 0
 *	@otherwise: NAME		with @needs: who may not have the kernel's probes gets that file as a variant
 *	@note: WORDS			told on standard error when the run begins: what is different, and why
 *	@reads: NAME			the stacks are read from outside, as dtap dump does, so many times a second as the
 *					option NAME says (reads.h): trees of them, tables of what threads wait for; the
 *					script only says which processes
 *
 * KIND is a row of kinds.def.  The script has a predicate "selected", true for the functions that were named.
 */
#ifndef DTAP_CMD_READY_HEAD_H
#define DTAP_CMD_READY_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct strbuf;

enum ready_kind {
#define READY_KIND(NAME, name, what) READY_##NAME,
#include "cmd/ready/kinds.def"
#undef READY_KIND
	READY_KINDS
};

enum ready_form {
	READY_TABLE, READY_EVENTS, READY_DISTRIBUTION, READY_TREE, READY_FUNCTION_TABLE,
	READY_FORMS,			/* those of scripts */
	READY_DIFFERENCE = READY_FORMS,	/* of dtap diff */
};
enum { READY_COLUMNS = 32 };	/* at most */

enum ready_functions { READY_NO_FUNCTIONS, READY_ANY_FUNCTIONS, READY_SOME_FUNCTIONS };

struct ready_column {
	const char *name, *title;
	enum ready_kind kind;
	bool is_key;
	const char *of, *by;	/* a value's aggregation; @by: the divisor of a ratio, else NULL */
	bool per_second, is_level;
};

struct ready_option {
	const char *name, *preset, *what;
	enum ready_kind kind;	/* int, text; of variants bool: it has no value */
	const char *value;	/* from the command line, NULL: @preset */
	bool is_variant;	/* another script is then the command */
	bool is_addition;	/* another script is then a part of it */
};

struct ready_head {
	const char *name, *path;
	const char *text;		/* the whole file */
	const char *more;		/* those of the additions that were asked for, or NULL */
	const char *summary, *about;	/* @about: the description, lines ending in \n */
	enum ready_form form;
	enum ready_functions functions;
	bool needs_kernel;
	const char *otherwise;		/* the variant for who may not have the kernel's probes, or NULL */
	const char *note, *reads;	/* or NULL */
	struct ready_column *columns;
	size_t ncolumns, columns_cap, nkeys;
	struct ready_option *options;
	size_t noptions, options_cap;
	size_t sort;			/* index of a column; ncolumns: none */
	const char *sort_name;		/* or NULL */
	uint64_t live_ns;		/* @live, 0: not given */
};

/*
 * Read the command @name from the file @path into @h; all memory is the arena's.  0, or a negative errno with a line
 * in @err that names the file and, for a mistake, the line.
 */
int ready_head_read(struct arena *a, const char *name, const char *path, struct ready_head *h, struct strbuf *err);

/* Add the file @path to @h, as an addition.  Returns as ready_head_read() does. */
int ready_head_extend(struct arena *a, const char *path, struct ready_head *h, struct strbuf *err);

/* Give a variant an option of the command that it is a variant of, unless its own head has it. */
void ready_head_inherit(struct arena *a, struct ready_head *variant, const struct ready_option *o);

/* The column of that name, or NULL. */
const struct ready_column *ready_column(const struct ready_head *h, const char *name);

#endif
