/*
 * Points of the kernel's perf events: perf.type(N).config(M), which samples by a counter, and process.data(ADDRESS), which
 * watches memory with the processor's debug registers.
 *
 * An event counts on each CPU for all processes; the program leaves those out that the point does not name.  So a process
 * that starts later is seen, too.
 *
 * Man page stapprobes(3stap), "PERF" and "HARDWARE DATA BREAKPOINT".
 */
#include "probe/points_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <elf.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include "base/arena.h"
#include "base/proc.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "probe/procs.h"

enum { DEFAULT_PERIOD = 1000000, MAX_HZ = 5000, MIN_CLOCK_NS = 200000 };

static bool number_of(const struct stp_point *point, const char *name, int64_t *ret)
{
	const struct stp_comp *c = points_comp(point, name);

	if (!c || !c->arg || c->arg->kind != STP_NUM)
		return false;
	*ret = c->arg->value;
	return true;
}

static void add_event(struct points_search *s, struct stp_point *point, const struct ebpf_event *event,
		      const struct points_file *program, uint32_t pid)
{
	struct probe key = { .kind = PROBE_EVENT, .mod = program ? program->path : "", .pid = pid }, *probe;
	struct ebpf_event *copy = arena_new_of(s->p->arena, struct ebpf_event);

	*copy = *event;
	probe = points_make(s->p, point, &key);
	probe->event = copy;
	if (program && procs_identify(obj_file(program->obj), &probe->exe_dev, &probe->exe_ino)) {
		s->why = "this kernel does not tell which program a process runs";
		return;
	}
	points_add(s, point, probe);
}

/* --- counters ----------------------------------------------------------------------------------------- */

static bool parse_event(struct points_search *s, struct ebpf_event *e)
{
	int64_t type = 0, config = 0, n = DEFAULT_PERIOD;

	number_of(s->point, "type", &type);
	number_of(s->point, "config", &config);
	e->is_freq = number_of(s->point, "hz", &n);
	if (!e->is_freq)
		number_of(s->point, "sample", &n);
	if (n <= 0)
		s->why = "write how often to sample as a number above 0";
	else if (e->is_freq && n > MAX_HZ)
		s->why = "a frequency above 5000 hz is refused";
	else if (!e->is_freq && type == PERF_TYPE_SOFTWARE && config <= PERF_COUNT_SW_TASK_CLOCK && n < MIN_CLOCK_NS)
		s->why = "a clock's interval under 200 microseconds is refused";
	e->type = (uint32_t)type;
	e->config = (uint64_t)config;
	e->period = (uint64_t)n;
	return !s->why;
}

void points_find_perf(struct points_search *s)
{
	const struct stp_comp *of = points_comp(s->point, "process");
	const char *path;
	struct ebpf_event e = { 0 };
	const struct points_file *f;
	struct stp_point *point = points_copy(s->p, s->point);

	if (points_comp(s->point, "counter")) {
		s->why = "counters that other probes read are not supported: without .counter the probe itself fires";
		return;
	}
	if (!parse_event(s, &e))
		return;
	if (!of || !of->arg) {
		add_event(s, point, &e, NULL, of ? s->p->conf.held ? s->p->conf.held : s->p->conf.pid : 0);
		return;
	}
	path = points_find_program(s->p, of->arg->str);
	if (!path) {
		points_add(s, point, NULL);	/* no process runs it */
		return;
	}
	f = points_open(s->p, path);
	if (f->err) {
		s->why = f->why;
		return;
	}
	points_set(s->p, point, "process", path);
	add_event(s, point, &e, f, 0);
}

/* --- memory ------------------------------------------------------------------------------------------- */

/* Where process @pid has its program's entry point, or 0. */
static uint64_t find_entry(uint32_t pid)
{
	struct strbuf auxv = { 0 };
	uint64_t v[2], ret = 0;

	if (!proc_read((pid_t)pid, "auxv", &auxv))
		for (size_t i = 0; !ret && i + sizeof(v) <= auxv.len; i += sizeof(v)) {
			memcpy(v, auxv.s + i, sizeof(v));
			if (v[0] == AT_ENTRY)
				ret = v[1];
		}
	strbuf_fini(&auxv);
	return ret;
}

/* How far the program @f is from its file's addresses in process @pid. */
static bool find_bias(struct points_search *s, const struct points_file *f, uint32_t pid, uint64_t *bias)
{
	uint64_t entry;

	*bias = 0;
	if (!obj_info(f->obj)->is_pie)
		return true;
	if (!pid && s->p->conf.command)
		return true;	/* compiled only: nobody knows yet */
	entry = pid ? find_entry(pid) : 0;
	if (!entry)
		s->why = arena_printf(s->p->arena, "%s is loaded at another address each time: use -c, -x or process(PID)", f->path);
	*bias = entry - obj_info(f->obj)->entry;
	return entry;
}

static bool check_place(struct points_search *s, const struct ebpf_event *e)
{
	if (e->len != 1 && e->len != 2 && e->len != 4 && e->len != 8)
		s->why = "a length is 1, 2, 4 or 8";
	else if (e->addr % e->len)
		s->why = arena_printf(s->p->arena, "address 0x%" PRIx64 " is no multiple of the length %" PRIu32, e->addr, e->len);
	return !s->why;
}

static void watch_in(struct points_search *s, const char *path)
{
	struct points_file *f = points_open(s->p, path);
	const struct stp_comp *data = points_comp(s->point, "data");
	struct ebpf_event e = { .type = PERF_TYPE_BREAKPOINT, .period = 1, .len = 1,
				.access = points_comp(s->point, "rw") ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W };
	struct stp_point *point;
	uint64_t bias;
	int64_t len;

	if (f->err) {
		s->why = f->why;
		return;
	}
	if (number_of(s->point, "length", &len))
		e.len = len > 0 && len <= 8 ? (uint32_t)len : 0;
	if (data->arg->kind == STP_NUM) {
		e.addr = (uint64_t)data->arg->value;
	} else if (!obj_symbol(f->obj, data->arg->str, strlen(data->arg->str), &e.addr)) {
		s->why = arena_printf(s->p->arena, "%s has no variable '%s'", path, data->arg->str);
		return;
	} else if (!find_bias(s, f, s->pid, &bias)) {
		return;
	} else {
		e.addr += bias;
	}
	if (!check_place(s, &e))
		return;
	point = points_copy(s->p, s->point);
	if (s->point->comps[0].arg && s->point->comps[0].arg->kind == STP_STR)
		points_set(s->p, point, "process", path);
	add_event(s, point, &e, s->pid ? NULL : f, s->pid);
}

void points_find_data(struct points_search *s)
{
	s->in_file = watch_in;
	points_each_file(s);
}
