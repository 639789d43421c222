/*
 * The builtin functions that become several instructions: functions.def names them.
 */
#ifndef DTAP_STP_LOWER_FUNC_H
#define DTAP_STP_LOWER_FUNC_H

#include "ir/ir.h"

struct low;
struct stp_node;

/* Is it a kernel... point that the handler is for? */
bool low_in_kernel(const struct low *l);

/* The value of @call, a call of the function, whose arguments are @args; IR_NO_REG without one. */
typedef ir_reg low_func(struct low *l, struct stp_node *call, const ir_reg *args);

/* the handler (lower_func.c) */
low_func low_func_pp, low_func_pn, low_func_ppfunc, low_func_probefunc, low_func_probemod, low_func_probe_type;
low_func low_func_pnlabel, low_func_registers_valid, low_func_remote_uri, low_func_is_myproc, low_func_nothing;
low_func low_func_page_size, low_func_in_pid_ns;
low_func low_func_is_return, low_func_module_name, low_func_stp_pid, low_func_returnval;

/* facts of a process; WITH: enum abi_task (lower_task.c) */
low_func low_func_register;		/* WITH: signed (lower_mem.c) */
low_func low_func_self, low_func_task, low_func_task_text, low_func_task_nice, low_func_task_prio, low_func_pexecname;

/* time; WITH: ns of a unit */
low_func low_func_wall, low_func_monotonic, low_func_clock_gettime;
low_func low_func_number;		/* WITH: the value */

/* strings */
low_func low_func_isdigit, low_func_isinstr, low_func_stringat, low_func_strpos, low_func_text_str;
low_func low_func_text_strn, low_func_string_quoted, low_func_tokenize;

low_func low_func_matched, low_func_ngroups;	/* lower_match.c */

/* memory (lower_mem.c); WITH: bytes, + 16 signed; of strings 1: argument 1 is the length */
low_func low_func_user_memory, low_func_user_peek, low_func_user_warn, low_func_kernel_memory, low_func_arg, low_func_user_string, low_func_kernel_string;
low_func low_func_string_or, low_func_string_nofault, low_func_string_quoted_at, low_func_string_warn;
low_func low_func_kernel_string_or, low_func_kernel_string_n, low_func_kernel_string_quoted;

/* stacks (lower_show.c); WITH: enum ir_show */
low_func low_func_uaddr, low_func_print_stack, low_func_print_backtrace, low_func_print_usyms;

/* output and the session */
low_func low_func_abort, low_func_assert, low_func_error, low_func_exit, low_func_log, low_func_warn;
low_func low_func_system;

#endif
