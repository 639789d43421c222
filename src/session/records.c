/*
 * What is done with a record: its actions, one function each, called from one table.
 */
#include "session/private.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "out/agg.h"
#include "out/error.h"
#include "out/printf.h"
#include "out/sink.h"
#include "out/trace.h"

/* A record with its fields read, while its actions run. */
struct reading {
	struct session *s;
	const struct ir_rec *rec;
	const struct ir_value *fields;
	const void *bytes;		/* the record itself */
	size_t size;
};

static int record(void *session, const void *bytes, size_t size, const void *next, bool committed);

/* --- actions ------------------------------------------------------------------------------------------ */

/* @act's own fields. */
static const struct ir_value *values(const struct reading *r, const struct ir_act *act)
{
	return r->fields + act->field;
}

/* Their types; a record without fields has no array of them. */
static const struct ir_slot *slots(const struct reading *r, const struct ir_act *act)
{
	return act->nfields ? r->rec->fields + act->field : NULL;
}

/* The text of @act's format; the caller closes @text. */
static int format_text(const struct reading *r, const struct ir_act *act, struct out_sink *text)
{
	out_open_mem(text);
	return out_printf(text, act->fmt, values(r, act), slots(r, act), act->nfields);
}

/* Structured output: the text, then its arguments as trace() would have them. */
static int document_printf(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = format_text(r, act, &text);

	structured_text(r->s, "message", out_text(&text));
	structured_values(r->s, "value", values(r, act), slots(r, act), act->nfields);
	out_close(&text);
	return e;
}

static int act_printf(const struct reading *r, const struct ir_act *act)
{
	if (r->s->doc)
		return document_printf(r, act);
	return out_printf(r->s->conf.out, act->fmt, values(r, act), slots(r, act), act->nfields);
}

static int act_trace(const struct reading *r, const struct ir_act *act)
{
	if (r->s->doc) {
		structured_values(r->s, "value", values(r, act), slots(r, act), 1);
		return 0;
	}
	out_trace(r->s->conf.out, values(r, act), &r->rec->fields[act->field], &r->s->lines);
	return 0;
}

/* The bytes of the fields behind the first, which says how many of them to show. */
static int act_tracemem(const struct reading *r, const struct ir_act *act)
{
	const struct ir_value *v = values(r, act);
	const struct ir_slot *slot = slots(r, act);
	unsigned char bytes[8 * IR_MAX_FIELDS];
	size_t n = 0;

	for (size_t i = 1; i < act->nfields; i++)
		for (unsigned int k = 0; k < slot[i].width; k++)
			bytes[n++] = (unsigned char)((uint64_t)v[i].i >> 8 * k);
	if (v[0].i >= 0 && (uint64_t)v[0].i < n)
		n = (size_t)v[0].i;
	if (r->s->doc) {
		char hex[2 * sizeof(bytes) + 1] = "";

		for (size_t i = 0; i < n; i++)
			snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
		structured_text(r->s, "tracemem", hex);
		return 0;
	}
	out_bytes(r->s->conf.out, bytes, n);
	return 0;
}

static int act_stack(const struct reading *r, const struct ir_act *act)
{
	if (r->s->doc) {
		structured_symbol(r->s, (uint64_t)values(r, act)->i, slots(r, act)->show);
		return 0;
	}
	out_key(r->s->conf.out, values(r, act), &r->rec->fields[act->field]);
	return 0;
}

/* Run @command with the signals that the session keeps for itself; its failure is its own. */
static void run_command(const char *command)
{
	char sh[] = "sh", c[] = "-c", *const argv[] = { sh, c, (char *)(uintptr_t)command, NULL };
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;

	sigemptyset(&none);
	if (posix_spawnattr_init(&attr))
		return;
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	if (!posix_spawn(&pid, "/bin/sh", NULL, &attr, argv, environ))
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	posix_spawnattr_destroy(&attr);
}

static int act_system(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = format_text(r, act, &text);

	if (!e)
		e = out_flush(r->s->conf.out);
	if (!e)
		run_command(out_text(&text));
	out_close(&text);
	return e;
}

/* DTrace guide, freopen(): "" is where the output went before. */
static int act_freopen(const struct reading *r, const struct ir_act *act)
{
	struct out_sink text;
	int e = format_text(r, act, &text), refused;

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
	const struct ir_value *v = values(r, act);
	struct session *s = r->s;
	struct strbuf err = { 0 };

	if (!option_is_dynamic(v[0].s))
		session_warn(s, "setopt: option '%s' is read before the script runs: #pragma D option or -x set it", v[0].s);
	else if (options_set(&s->opts, v[0].s, act->nfields > 1 ? v[1].s : NULL, OPTION_COMMAND, &err))
		session_warn(s, "setopt: %s", strbuf_str(&err));
	s->lines.quiet = s->opts.v[OPT_quiet];
	s->lines.rawbytes = s->opts.v[OPT_rawbytes] ? (unsigned int)s->opts.v[OPT_strsize] : 0;
	s->lines.flow = s->opts.v[OPT_flowindent];
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

static int carry_out(void *session, const void *bytes, size_t size)
{
	return record(session, bytes, size, NULL, true);
}

static int act_commit(const struct reading *r, const struct ir_act *act)
{
	return specs_end(r->s->specs, values(r, act)->i, carry_out, r->s);
}

static int act_discard(const struct reading *r, const struct ir_act *act)
{
	return specs_end(r->s->specs, values(r, act)->i, NULL, NULL);
}

static int act_exit(const struct reading *r, const struct ir_act *act)
{
	if (!r->s->exited)
		r->s->status = (int)values(r, act)->i;
	r->s->exited = r->s->ending = true;
	return 0;
}

static int act_printa(const struct reading *r, const struct ir_act *act)
{
	return session_print_agg(r->s, act->aggs, act->naggs, act->fmt);
}

static int act_clear(const struct reading *r, const struct ir_act *act)
{
	const struct out_agg_row *rows;
	long n = aggs_read(r->s->aggs, act->aggs[0], &rows);

	return n < 0 ? (int)n : aggs_clear(r->s->aggs, act->aggs[0]);
}

static int act_trunc(const struct reading *r, const struct ir_act *act)
{
	return session_trunc_agg(r->s, act->aggs[0], act->nfields ? values(r, act)->i : 0);
}

static int act_normalize(const struct reading *r, const struct ir_act *act)
{
	aggs_normalize(r->s->aggs, act->aggs[0], (uint64_t)values(r, act)->i);
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
	session_stap_error(r->s, values(r, act));
	return 0;
}

static int act_warn(const struct reading *r, const struct ir_act *act)
{
	session_stap_warn(r->s, values(r, act)->s);
	return 0;
}

static int act_hist(const struct reading *r, const struct ir_act *act)
{
	const uint64_t *words;
	int e = ir_rec_stat(r->rec, r->bytes, r->size, &words);

	return e ? e : session_stap_hist(r->s, r->rec->stat, words, values(r, act)->i);
}

static int (*const actions[IR_ACT_MAX])(const struct reading *r, const struct ir_act *act) = {
	[IR_ACT_PRINTF] = act_printf,
	[IR_ACT_TRACE] = act_trace,
	[IR_ACT_PRINTA] = act_printa,
	[IR_ACT_TRACEMEM] = act_tracemem,
	[IR_ACT_STACK] = act_stack,
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
	[IR_ACT_HIST] = act_hist,
};

/* --- records ------------------------------------------------------------------------------------------ */

/* The number of clause @clause among those enabled on @en, as EPIDs count; en->epid when it is none of them. */
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

/* Hand a line to the user, and close it. */
static void message(struct session *s, struct out_sink *text)
{
	s->conf.message(s->conf.message_ctx, out_text(text));
	out_close(text);
}

/* A clause that faulted: DTrace's line for it. */
static int error_record(struct session *s, const struct enabled *en, const struct abi_record *hdr)
{
	const uint64_t *slots = (const uint64_t *)(hdr + 1);
	const struct out_fault fault = {
		.epid = (uint32_t)slots[0],
		.id = en->probe->id,
		.prov = en->probe->prov, .mod = en->probe->mod, .func = en->probe->func, .name = en->probe->name,
		.action = (uint32_t)slots[1],
		.off = (int64_t)slots[2],
		.fault = (uint32_t)slots[3],
		.value = slots[4],
	};
	struct out_sink text;

	out_open_mem(&text);
	out_fault(&text, s->conf.command, &fault);
	message(s, &text);
	return 0;
}

/* Which clause of which probe made the record @hdr; false for one of a fault or of nobody we know. */
static bool firing_of(const struct session *s, const struct abi_record *hdr, struct out_firing *ret)
{
	const struct ir_prog *prog = s->conf.prog;
	const struct enabled *en;

	if (hdr->probe >= s->nenabled || hdr->rec >= prog->nrecs)
		return false;
	en = &s->enabled[hdr->probe];
	*ret = (struct out_firing){
		.cpu = hdr->cpu,
		.id = en->probe->id,
		.epid = epid_of(en, prog->recs[hdr->rec]->clause),
		.rec = hdr->rec,
		.time_ns = hdr->time_ns,
		.tid = hdr->tid,
		.prov = en->probe->prov, .func = en->probe->func, .name = en->probe->name,
	};
	return true;
}

/* Does the record wait for a commit, or is it but a count?  0: neither; 1: it is done with. */
static int speculative(struct session *s, const struct reading *r)
{
	const struct ir_act *first = r->rec->nacts ? r->rec->acts : NULL;
	int e;

	if (first && first->kind == IR_ACT_SPECBUSY) {
		s->spec_busy++;
		return 1;
	}
	if (!first || first->kind != IR_ACT_SPECULATE)
		return 0;
	e = specs_keep(s->specs, values(r, first)->i, r->bytes, r->size);
	return e ? e : 1;
}

/* Has the record a line of its own?  In DTrace commit() and discard() record nothing: what is committed has its lines. */
static bool is_shown(const struct ir_rec *rec)
{
	for (uint32_t i = 0; i < rec->nacts; i++)
		if (rec->acts[i].kind != IR_ACT_COMMIT && rec->acts[i].kind != IR_ACT_DISCARD)
			return true;
	return false;
}

/* Carry out the record, unless it is speculative and not @committed. */
static int record(void *session, const void *bytes, size_t size, const void *next, bool committed)
{
	struct session *s = session;
	const struct abi_record *hdr = bytes;
	struct ir_value fields[IR_MAX_FIELDS];
	struct reading r = { .s = s, .fields = fields, .bytes = bytes, .size = size };
	struct out_firing firing, behind;
	bool shown;
	uint32_t i;
	int e;

	if (hdr->rec == ABI_REC_ERROR)
		return hdr->probe >= s->nenabled || size < sizeof(*hdr) + ABI_ERROR_SLOTS * sizeof(uint64_t) ?
			       -EINVAL : error_record(s, &s->enabled[hdr->probe], hdr);
	if (!firing_of(s, hdr, &firing))
		return -EINVAL;
	r.rec = s->conf.prog->recs[hdr->rec];
	e = ir_rec_decode(r.rec, bytes, size, fields);
	if (e)
		return e;
	if (!committed) {
		e = speculative(s, &r);
		if (e)
			return e < 0 ? e : 0;
	}
	shown = is_shown(r.rec);
	if (shown && s->doc)
		structured_probe(s, firing.cpu, s->enabled[hdr->probe].probe);
	else if (shown)
		out_line_begin(s->conf.out, &s->lines, &firing, next && firing_of(s, next, &behind) ? &behind : NULL);
	for (i = 0; i < r.rec->nacts && !e; i++)
		e = actions[r.rec->acts[i].kind](&r, &r.rec->acts[i]);
	if (shown && s->doc)
		structured_probe_end(s);
	else if (shown)
		out_line_end(s->conf.out, &s->lines);
	return e;
}

int session_record(void *session, const void *bytes, size_t size, const void *next)
{
	return record(session, bytes, size, next, false);
}

/* Tell of @n losses; SystemTap's are told at the end. */
static void tell_drops(struct session *s, unsigned int kind, uint64_t n)
{
	struct out_sink text;

	if (!n)
		return;
	if (s->conf.stp) {
		session_stap_lost(s, (enum abi_drop)kind, n);
		return;
	}
	if (s->doc) {
		s->told[kind] += n;
		structured_drops(s, kind, n, s->told[kind]);
		return;
	}
	out_open_mem(&text);
	out_drops(&text, s->conf.command, kind, n, -1, s->opts.v[OPT_droptags]);
	message(s, &text);
}

/* Told once, by whichever process. */
static void report_interpreted(struct session *s)
{
	uint64_t e = __atomic_load_n(&place_control(s->place)->interpreted, __ATOMIC_RELAXED);
	struct out_sink text;

	if (!e || e > 4095 || s->told_interpreted || (s->lines.quiet && !s->conf.stp))
		return;
	s->told_interpreted = true;
	out_open_mem(&text);
	out_puts(&text, "# ");
	out_puts(&text, s->conf.command);
	out_puts(&text, ": a traced process cannot have machine code (");
	out_puts(&text, strerror((int)e));
	out_puts(&text, "): the programs are interpreted there, which takes longer\n");
	message(s, &text);
}

void session_report_drops(struct session *s)
{
	const struct abi_control *c = place_control(s->place);
	int kind;

	report_interpreted(s);
	tell_drops(s, OUT_DROP_SPEC, specs_drops(s->specs));
	tell_drops(s, OUT_DROP_SPEC_NONE, s->spec_busy);
	s->spec_busy = 0;
	for (kind = 0; kind < ABI_DROP_MAX; kind++) {
		uint64_t n = __atomic_load_n(&c->drops[kind], __ATOMIC_RELAXED);

		tell_drops(s, (unsigned int)kind, n - s->drops[kind]);
		s->drops[kind] = n;
	}
}
