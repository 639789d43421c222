/*
 * The builtin functions that are lowered to several instructions: functions.def names them.
 */
#ifndef DTAP_STP_LOWER_FUNC_H
#define DTAP_STP_LOWER_FUNC_H

#include "ir/ir.h"

struct lower;
struct stp_node;

/* Is the handler for a kernel... point? */
bool stp_lower_in_kernel(const struct lower *l);

/* The value of @call, a call of the function with the arguments @args; IR_NO_REG if it has none. */
typedef ir_reg stp_lower_func(struct lower *l, struct stp_node *call, const ir_reg *args);

/* the handler (lower_func.c) */
stp_lower_func stp_func_pp, stp_func_pn, stp_func_ppfunc, stp_func_probefunc, stp_func_probemod, stp_func_probe_type;
stp_lower_func stp_func_pnlabel, stp_func_registers_valid, stp_func_remote_uri, stp_func_is_myproc, stp_func_nothing;
stp_lower_func stp_func_page_size, stp_func_in_pid_ns;
stp_lower_func stp_func_is_return, stp_func_module_name, stp_func_stp_pid, stp_func_returnval;

/* facts about a process; WITH: enum abi_task (lower_task.c) */
stp_lower_func stp_func_register;		/* WITH: signed (lower_mem.c) */
stp_lower_func stp_func_self, stp_func_task, stp_func_task_text, stp_func_task_nice, stp_func_task_prio, stp_func_pexecname;

/* time; WITH: ns of a unit */
stp_lower_func stp_func_wall, stp_func_monotonic, stp_func_clock_gettime;
stp_lower_func stp_func_hz, stp_func_jiffies;
stp_lower_func stp_func_number;		/* WITH: the value */

/* strings */
stp_lower_func stp_func_isdigit, stp_func_isinstr, stp_func_stringat, stp_func_strpos, stp_func_text_str;
stp_lower_func stp_func_text_strn, stp_func_string_quoted, stp_func_tokenize;

stp_lower_func stp_func_matched, stp_func_ngroups;	/* lower_match.c */

/* memory (lower_mem.c); WITH: bytes, + 16 if signed; strings: 1 if argument 1 is the length */
stp_lower_func stp_func_user_memory, stp_func_user_peek, stp_func_user_warn, stp_func_kernel_memory;
stp_lower_func stp_func_arg, stp_func_user_string, stp_func_kernel_string;
stp_lower_func stp_func_string_or, stp_func_string_nofault, stp_func_string_quoted_at, stp_func_string_warn;
stp_lower_func stp_func_kernel_string_or, stp_func_kernel_string_n, stp_func_kernel_string_quoted;

stp_lower_func stp_func_words;		/* WITH: a row of lang/words.def (lower_words.c) */

/* stacks (lower_show.c); WITH: enum ir_show */
stp_lower_func stp_func_uaddr, stp_func_addr, stp_func_user_mode, stp_func_ustack, stp_func_print_stack, stp_func_print_backtrace, stp_func_print_usyms;

/* output and the session */
stp_lower_func stp_func_abort, stp_func_assert, stp_func_error, stp_func_exit, stp_func_log, stp_func_warn;
stp_lower_func stp_func_system;

#endif
