/*
 * A table that is redrawn on the whole terminal until q is pressed: dtap top on a terminal.
 */
#ifndef DTAP_CMD_READY_LIVE_H
#define DTAP_CMD_READY_LIVE_H

struct ready_run;

/*
 * Do a started run to its end, with @r->interval_ns between tables; @r->width follows the terminal's width.  The
 * terminal is restored at the end.  0 or an exit code.
 */
int ready_live(struct ready_run *r);

#endif
