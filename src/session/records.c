/*
 * The actions of records: one function for each, called from one table.
 */
#include "session/form.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/strbuf.h"
#include "out/agg.h"
#include "out/dialect.h"
#include "out/error.h"
#include "out/printf.h"
#include "out/shown.h"
#include "out/sink.h"
#include "out/trace.h"

static int carry_out(struct session *s, const struct record *rec, const struct record *next, bool committed);

/* --- actions ------------------------------------------------------------------------------------------ */

int reading_text(const struct reading *r, const struct ir_act *act, struct out_sink *text)
{
	struct out_sink all;
	int e;

	out_open_mem(text);
	text->dialect = r->s->conf.out->dialect;
	text->names = r->s->conf.out->names;
	e = out_printf(text, act->fmt, reading_values(r, act), reading_slots(r, act), act->nfields);
	if (act->kind != IR_ACT_PRINT)
		return e;
	all = *text;
	out_open_mem(text);
	out_shown(text, out_text(&all));
	out_close(&all);
	return e;
}

size_t reading_bytes(const struct reading *r, const struct ir_act *act, unsigned char bytes[READING_BYTES])
{
	const struct ir_value *v = reading_values(r, act);
	const struct ir_slot *slot = reading_slots(r, act);
	size_t n = 0;

	for (size_t i = 1; i < act->nfields; i++)
		for (unsigned int k = 0; k < slot[i].width; k++)
			bytes[n++] = (unsigned char)((uint64_t)v[i].i >> 8 * k);
	if (v[0].type == IR_STR)
		return n;
	return v[0].i >= 0 && (uint64_t)v[0].i < n ? (size_t)v[0].i : n;
}

/* A command that fails does not end the session. */
static void run_command(const char *command)
{
	char sh[] = "sh", c[] = "-c", *const argv[] = { sh, c, (char *)(uintptr_t)command, NULL };
	pid_t pid;

	if (!child_spawn(&pid, "/bin/sh", NULL, argv))
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}

static int act_system(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = reading_text(r, act, &text);

	if (!e)
		e = out_flush(r->s->conf.out);
	if (!e)
		run_command(out_text(&text));
	out_close(&text);
	return e;
}

/* DTrace guide, freopen(): "" restores the former output. */
static int act_freopen(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = reading_text(r, act, &text), refused;

	if (!e) {
		refused = out_reopen(r->s->conf.out, out_text(&text));
		if (refused)
			session_warn(r->s, "freopen: %s: %s", out_text(&text), strerror(-refused));
	}
	out_close(&text);
	return e;
}

static int act_ftruncate(const struct reading *r, const struct ir_act *act)
{
	(void)act;
	return out_truncate(r->s->conf.out);
}

static int act_setopt(const struct reading *r, const struct ir_act *act)
{
	const struct ir_value *v = reading_values(r, act);
	struct session *s = r->s;
	struct strbuf err = { 0 };

	if (!option_is_dynamic(v[0].s))
		session_warn(s, "setopt: option '%s' is read before the script runs: #pragma D option or -x set it", v[0].s);
	else if (options_set(&s->opts, v[0].s, act->nfields > 1 ? v[1].s : NULL, OPTION_COMMAND, &err))
		session_warn(s, "setopt: %s", strbuf_str(&err));
	s->output.lines.quiet = s->opts.v[OPT_quiet];
	s->output.lines.rawbytes = s->opts.v[OPT_rawbytes] ? (unsigned int)s->opts.v[OPT_strsize] : 0;
	s->output.lines.flow = s->opts.v[OPT_flowindent];
	s->conf.out->stack_indent = (unsigned int)s->opts.v[OPT_stackindent];
	session_set_rates(s);
	strbuf_fini(&err);
	return 0;
}

static int act_nothing(const struct reading *r, const struct ir_act *act)
{
	(void)r;
	(void)act;
	return 0;
}

static int committed(void *session, const struct record *rec)
{
	return carry_out(session, rec, NULL, true);
}

static int act_commit(const struct reading *r, const struct ir_act *act)
{
	return specs_end(r->s->specs, reading_values(r, act)->i, committed, r->s);
}

static int act_discard(const struct reading *r, const struct ir_act *act)
{
	return specs_end(r->s->specs, reading_values(r, act)->i, NULL, NULL);
}

static int act_exit(const struct reading *r, const struct ir_act *act)
{
	/* END's status replaces earlier ones. */
	r->s->finish.status = (int)reading_values(r, act)->i;
	r->s->finish.exited = r->s->finish.is_due = true;
	return 0;
}

static int act_clear(const struct reading *r, const struct ir_act *act)
{
	const struct out_agg_row *rows;
	long n = aggs_read(r->s->aggs, act->aggs[0], &rows);

	return n < 0 ? (int)n : aggs_clear(r->s->aggs, act->aggs[0]);
}

static int act_trunc(const struct reading *r, const struct ir_act *act)
{
	return session_trunc_agg(r->s, act->aggs[0], act->nfields ? reading_values(r, act)->i : 0);
}

static int act_normalize(const struct reading *r, const struct ir_act *act)
{
	aggs_normalize(r->s->aggs, act->aggs[0], (uint64_t)reading_values(r, act)->i);
	return 0;
}

static int act_denormalize(const struct reading *r, const struct ir_act *act)
{
	aggs_normalize(r->s->aggs, act->aggs[0], 1);
	return 0;
}

static int act_showprobe(const struct reading *r, const struct ir_act *act)
{
	(void)r;
	(void)act;
	return 0;
}

static int act_error(const struct reading *r, const struct ir_act *act)
{
	const struct ir_prog *prog = r->s->conf.prog;
	const struct ir_value *v = reading_values(r, act);
	const struct out_fault fault = {
		.fault = (uint32_t)v[0].i, .value = (uint64_t)v[1].i, .text = v[3].s,
		.near = v[2].i >= 0 && v[2].i < (int64_t)prog->nnears ? &prog->nears[v[2].i] : NULL,
	};

	session_fault(r->s, &fault);
	return 0;
}

static int act_warn(const struct reading *r, const struct ir_act *act)
{
	session_say_warning(r->s, reading_values(r, act)->s);
	return 0;
}

/* Actions that do the same in each form of the output; actions that print are in struct form. */
static action_fn *const actions[IR_ACT_MAX] = {
	[IR_ACT_SYSTEM] = act_system,
	[IR_ACT_FREOPEN] = act_freopen,
	[IR_ACT_FTRUNCATE] = act_ftruncate,
	[IR_ACT_SETOPT] = act_setopt,
	[IR_ACT_SPECULATE] = act_nothing,
	[IR_ACT_COMMIT] = act_commit,
	[IR_ACT_DISCARD] = act_discard,
	[IR_ACT_SPECBUSY] = act_nothing,
	[IR_ACT_EXIT] = act_exit,
	[IR_ACT_CLEAR] = act_clear,
	[IR_ACT_TRUNC] = act_trunc,
	[IR_ACT_NORMALIZE] = act_normalize,
	[IR_ACT_DENORMALIZE] = act_denormalize,
	[IR_ACT_SHOWPROBE] = act_showprobe,
	[IR_ACT_ERROR] = act_error,
	[IR_ACT_WARN] = act_warn,
};

static int carry_out_act(const struct reading *r, const struct ir_act *act)
{
	action_fn *prints;

	if (!session_may_act(r->s, r->record, act))
		return 0;
	prints = r->s->output.form->act[act->kind];
	return prints ? prints(r, act) : actions[act->kind](r, act);
}

/* --- records ------------------------------------------------------------------------------------------ */

/* The EPID of clause @clause on @en; en->epid if it is not enabled there. */
static uint32_t epid_of(const struct enabled *en, uint32_t clause)
{
	uint32_t i;

	for (i = 0; i < en->nclauses; i++)
		if (en->clauses[i]->id == clause)
			return en->epid + i;
	return en->epid;
}

void session_warn(struct session *s, const char *fmt, ...)
{
	struct strbuf b = { 0 };
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strbuf_printf(&b, "%s: %s\n", s->conf.command, text);
	s->conf.message(s->conf.message_ctx, strbuf_str(&b));
	strbuf_fini(&b);
}

/* A clause that faulted: DTrace's line for it. */
static int error_record(struct session *s, const struct abi_record *hdr)
{
	const struct enabled *en;
	const struct probe *p;
	const uint64_t *slots = (const uint64_t *)(hdr + 1);
	struct out_fault fault;

	if (!session_fired(s, hdr->probe, &en, &p))
		return -EINVAL;
	fault = (struct out_fault){
		.id = (uint32_t)slots[0],
		.prov = p->prov, .mod = p->mod, .func = p->func, .name = p->name,
		.clause = (uint32_t)slots[1],
		.pc = (int64_t)slots[2],
		.fault = (uint32_t)slots[3],
		.value = slots[4],
	};

	session_fault(s, &fault);
	return 0;
}

/* The clause and probe of the record @hdr; false: a record of a fault, or unknown. */
static bool firing_of(struct session *s, const struct abi_record *hdr, struct out_firing *ret)
{
	const struct ir_prog *prog = s->conf.prog;
	const struct enabled *en;
	const struct probe *fired;

	if (hdr->rec >= prog->nrecs || !session_fired(s, hdr->probe, &en, &fired))
		return false;
	*ret = (struct out_firing){
		.cpu = hdr->cpu,
		.id = en->probe->id,
		.epid = epid_of(en, prog->recs[hdr->rec]->clause),
		.rec = hdr->rec,
		.time_ns = hdr->time_ns,
		.tid = hdr->tid,
		.prov = fired->prov, .func = fired->func, .name = fired->name,
	};
	return true;
}

/* Handle speculative records and those that only count.  1: done; 0: it is an ordinary record. */
static int speculative(struct session *s, const struct reading *r)
{
	const struct ir_act *first = r->rec->nacts ? r->rec->acts : NULL;
	int e;

	if (first && first->kind == IR_ACT_SPECBUSY) {
		s->losses.spec_busy++;
		return 1;
	}
	if (!first || first->kind != IR_ACT_SPECULATE)
		return 0;
	e = specs_keep(s->specs, reading_values(r, first)->i, r->record);
	return e ? e : 1;
}

/* Does the record have a line?  In DTrace commit() and discard() have none; committed records have theirs. */
static bool is_shown(const struct ir_rec *rec)
{
	for (uint32_t i = 0; i < rec->nacts; i++)
		if (rec->acts[i].kind != IR_ACT_COMMIT && rec->acts[i].kind != IR_ACT_DISCARD)
			return true;
	return false;
}

/* Run the record's actions, unless it is speculative and not @committed. */
static int carry_out(struct session *s, const struct record *rec, const struct record *next, bool committed)
{
	const struct abi_record *hdr = rec->hdr;
	struct ir_value fields[IR_MAX_FIELDS];
	struct reading r = { .s = s, .fields = fields, .record = rec };
	const bool looks_ahead = next && s->output.lines.flow;
	struct out_firing firing, behind;
	bool shown;
	uint32_t i;
	int e;

	if (hdr->rec == ABI_REC_ERROR)
		return rec->size < sizeof(*hdr) + ABI_ERROR_SLOTS * sizeof(uint64_t) ? -EINVAL : error_record(s, hdr);
	if (!firing_of(s, hdr, &firing))
		return -EINVAL;
	r.rec = s->conf.prog->recs[hdr->rec];
	e = ir_rec_decode(r.rec, hdr, rec->size, fields);
	if (e)
		return e;
	if (!committed) {
		e = speculative(s, &r);
		if (e)
			return e < 0 ? e : 0;
	}
	shown = is_shown(r.rec);
	if (shown)
		s->output.form->begin(&r, &firing, looks_ahead && firing_of(s, next->hdr, &behind) ? &behind : NULL);
	for (i = 0; i < r.rec->nacts && !e; i++)
		e = carry_out_act(&r, &r.rec->acts[i]);
	if (shown)
		s->output.form->end(s);
	return e;
}

int session_record(struct session *s, const struct record *rec, const struct record *next)
{
	return carry_out(s, rec, next, false);
}

/* Report @n losses. */
static void tell_drops(struct session *s, unsigned int kind, uint64_t n)
{
	if (n)
		s->output.form->drops(s, kind, n);
}

/* Reported once for all processes. */
static void report_interpreted(struct session *s, int e)
{
	struct out_sink text;

	if (!e || s->losses.interpreted || (s->output.lines.quiet && out_dialect(s->conf.out)->titles))
		return;
	s->losses.interpreted = true;
	out_open_mem(&text);
	out_puts(&text, "# ");
	out_puts(&text, s->conf.command);
	out_puts(&text, ": a traced process cannot have machine code (");
	out_puts(&text, strerror(e));
	out_puts(&text, "): the programs are interpreted there, which takes longer\n");
	session_tell(s, &text);
}

void session_report_drops(struct session *s)
{
	struct place_told told;
	int kind;

	s->place->ops->told(s->place, &told);
	report_interpreted(s, told.interpreted);
	tell_drops(s, OUT_DROP_SPEC, specs_drops(s->specs));
	tell_drops(s, OUT_DROP_SPEC_NONE, s->losses.spec_busy);
	s->losses.spec_busy = 0;
	tell_drops(s, OUT_DROP_CORRUPT, told.bad - s->losses.bad + s->losses.nbad);
	s->losses.bad = told.bad;
	tell_drops(s, OUT_DROP_NAMELESS, s->losses.nnameless);
	s->losses.nnameless = 0;
	tell_drops(s, OUT_DROP_BUDGET, s->losses.nrests);
	s->losses.nrests = 0;
	for (kind = 0; kind < ABI_DROP_MAX; kind++) {
		tell_drops(s, (unsigned int)kind, told.drops[kind] - s->losses.drops[kind] +
			   (kind == ABI_DROP_RECORD ? s->losses.nfull : 0));
		s->losses.drops[kind] = told.drops[kind];
	}
	s->losses.nbad = s->losses.nfull = 0;
}
