/*
 * A dialect: the output rules of a language, for programs in the IR, which is independent of the language.  A program
 * has one (ir_prog.dialect), and so has the sink to which its values are printed; the default is D's.
 *
 * A third language needs a front end and a dialect.
 */
#ifndef DTAP_OUT_DIALECT_H
#define DTAP_OUT_DIALECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fmt_conv;
struct ir_map;
struct ir_slot;
struct ir_value;
struct out_fault;
struct out_sink;
struct out_spec;

/* Functions print to @s; lines include their newline.  NULL: the language does not have this. */
struct dialect {
	/* Print @v by the conversion @c, with @spec's flags, width and precision.  0, or -EINVAL: wrong kind. */
	int (*conv)(struct out_sink *s, const struct fmt_conv *c, const struct out_spec *spec, const struct ir_value *v,
		    const struct ir_slot *slot);
	bool zero_is_none;	/* a precision of 0 counts as no precision */

	/* Print the histogram of the statistic of @m in @words (abi/stat.h).  0, or -EINVAL: it has none. */
	int (*hist)(struct out_sink *s, const struct ir_map *m, const uint64_t *words);

	/* Messages of the command @command. */
	void (*fault)(struct out_sink *s, const char *command, const struct out_fault *f);
	void (*warn)(struct out_sink *s, const char *text);
	/* @n drops of @kind (enum abi_drop or out_drop); @tags: with the name of the kind. */
	void (*lost)(struct out_sink *s, const char *command, unsigned int kind, uint64_t n, bool tags);

	/*
	 * Are faults and skipped clauses counted?  Then too many of them end the session, with a status of 1 and
	 * PROBE_FAILED instead of END.  These print the message for too many skipped, and the counts at the end.
	 */
	bool counts;
	void (*too_many)(struct out_sink *s);
	void (*summary)(struct out_sink *s, uint64_t nfaults, uint64_t nskipped);

	bool titles;		/* without -q, each record has a line of its own, under column titles */
	bool stands_apart;	/* an empty line precedes what is printed after a run */
};

extern const struct dialect dialect_d, dialect_stp;

#endif
