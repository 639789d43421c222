/*
 * What is known of a traced process, for events: its unit, container, interpreter, and chosen variables of its
 * environment.  It is read once, when the process is met, and stays known for a while after its end, since events come later.
 */
#ifndef DTAP_CMD_SERVE_LABELS_H
#define DTAP_CMD_SERVE_LABELS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct serve_pairs;

struct labels {
	char *unit;			/* of systemd: "shop-1.service"; "": none */
	char *container;		/* its number, as the control group has it; "": none */
	char *interpreter;		/* the executable's name: "python3.13" */
	char **values;			/* of the variables that were asked for; "": not set */
	size_t nvalues;
	uid_t user;			/* (uid_t)-1: unknown */
	uint64_t gone_ms;		/* when the process ended, 0: it lives; the owner's */
};

/* @environment: names of labels with the variables' names.  Of a process that has ended, all is "". */
void labels_read(pid_t pid, const struct serve_pairs *environment, struct labels *ret);
int labels_copy(const struct labels *l, struct labels *ret);	/* 0 or -ENOMEM: *ret is empty */
void labels_fini(struct labels *l);	/* accepts a zeroed one */

/*
 * A copy in one block, for free(): of processes that come and go, many small ones would leave the heap in pieces.  NULL: out of
 * memory.
 */
struct labels *labels_pack(const struct labels *l);

/* The parts of a control group's path that name the unit and the container; appended to @unit and @container. */
struct strbuf;
void labels_of_cgroup(const char *path, struct strbuf *unit, struct strbuf *container);

#endif
