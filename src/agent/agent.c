/* SPDX-License-Identifier: MIT */
/*
 * The agent's life cycle: loading, setup, choice of hooks.
 *
 * Preloaded, it starts before the interpreter.  An audit hook may be added even then; its first call in an initialised
 * interpreter is a safe point with the GIL held, where the rest is set up.  Loaded into a running process, it is
 * entered by agent_entry(), and its own thread takes the GIL: the thread that loads it was stopped at some instruction of
 * Python's, where it may have any of the interpreter's locks, and its audit hooks may not run.  In other processes of a
 * preloaded tree (not CPython, or an unsupported one) it does nothing.
 */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/agent.h"
#include "abi/ask.h"
#include "agent/ask.h"
#include "agent/code.h"
#include "agent/control.h"
#include "agent/copies.h"
#include "agent/cost.h"
#include "agent/early.h"
#include "agent/engine.h"
#include "agent/environ.h"
#include "agent/hook_function.h"
#include "agent/modules.h"
#include "agent/slot.h"
#include "agent/subinterp.h"
#include "agent/task.h"
#include "agent/typename.h"
#include "agent/watch.h"
#include "agent/watched.h"
#include "vm/calls.h"

struct agent agent;
__thread struct agent_thread agent_thread = { .stack_limit = STACK_UNKNOWN };

/* A marker is supplied by the first usable hook of the table that serves it. */
static const struct hook *const hooks[] = {
	&hook_monitoring, &hook_eval, &hook_profile, &hook_trace, &hook_gc, &hook_import, &hook_thread,
	&hook_task, &hook_memory, &hook_audit,
};

_Static_assert(sizeof(hooks) / sizeof(*hooks) == AGENT_HOOKS, "agent.supplied_by has one for each");

/* The markers to be fired, if they are supplied. */
static unsigned raised(void)
{
	return marker_raised_mask() & ~control_left();
}

unsigned agent_listeners(void)
{
	return raised() | agent.engine.markers;
}

static unsigned served_by(const struct hook *hook)
{
	return agent.py.free_threaded ? hook->serves_free : hook->serves;
}

/* Say what a free-threaded interpreter's hooks do not supply, unless something else has been said. */
static void miss(unsigned markers)
{
	static const char prefix[] = "not in a free-threaded CPython:", *const names[] = {
#define ABI_MARKER(name, ...) #name,
#include "abi/marker.def"
#undef ABI_MARKER
	};
	unsigned n = sizeof(prefix) - 1;

	if (!agent.py.free_threaded || !markers || agent.why[0])
		return;
	agent_why(prefix);
	for (unsigned k = 0; k < ABI_MARKERS; k++) {
		if (!(markers >> k & 1) || n + 2 + strlen(names[k]) > sizeof(agent.why))
			continue;
		agent.why[n++] = ' ';
		for (const char *s = names[k]; *s; s += 1 + (s[0] == '_' && s[1] == '_'))
			agent.why[n++] = *s == '_' ? '-' : *s;
		agent.why[n] = 0;
	}
}

static void update_hooks(void)
{
	unsigned listeners, left;
	bool was_busy = agent_thread.busy;

	if (__atomic_exchange_n(&agent.updating, true, __ATOMIC_ACQUIRE))
		return;
	agent_thread.busy = true;
	agent.why[0] = 0;
	engine_update();
	hook_function_update();
	agent.py.PyErr_Clear();
	__atomic_store_n(&agent.marker_mask, raised(), __ATOMIC_RELAXED);
	left = listeners = agent.marker_mask | agent.engine.markers;
	if (__atomic_exchange_n(&agent.displaced, false, __ATOMIC_RELAXED))
		hook_trace_again();
	__atomic_store_n(&agent.installed, listeners, __ATOMIC_RELAXED);
	agent.supplied = 0;
	for (unsigned i = 0; i < AGENT_HOOKS; i++) {
		unsigned wants = left & served_by(hooks[i]);

		if (!hooks[i]->usable())
			continue;
		left &= ~wants;
		if (wants != agent.supplied_by[i])
			agent.supplied_by[i] = hooks[i]->update(wants);
		agent.supplied |= agent.supplied_by[i];
		agent.py.PyErr_Clear();
	}
	cost_update();
	miss(left);
	subinterp_expect();
	agent.py.PyErr_Clear();
	__atomic_store_n(&agent.updating, false, __ATOMIC_RELEASE);
	agent_thread.busy = was_busy;
}

unsigned agent_supplied_by(const struct hook *hook)
{
	for (unsigned i = 0; i < AGENT_HOOKS; i++)
		if (hooks[i] == hook)
			return agent.supplied_by[i];
	return 0;
}

bool agent_changed(void)
{
	return agent.phase == AGENT_READY &&
	       (__atomic_load_n(&agent.displaced, __ATOMIC_RELAXED) || engine_changed() ||
		raised() != __atomic_load_n(&agent.marker_mask, __ATOMIC_RELAXED) ||
		agent_listeners() != __atomic_load_n(&agent.installed, __ATOMIC_RELAXED));
}

long long agent_now_ms(void)
{
	struct timespec now = { 0 };

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

void agent_why(const char *text)
{
	size_t length = strlen(text);

	if (length >= sizeof(agent.why))
		length = sizeof(agent.why) - 1;
	memcpy(agent.why, text, length);
	agent.why[length] = 0;
}

void agent_forked(void)
{
	agent.updating = false;
	watched_forked(&agent.caught.codes);
	watched_forked(&agent.threads.codes);
	engine_forked();
}

static bool measured(void)
{
	if (code_measure()) {
		typename_measure();
		return true;
	}
	agent_why("the layout of this CPython's code objects cannot be told");
	return false;
}

static void read_version(void)
{
	struct pyobj *hex = agent.py.PySys_GetObject("hexversion");

	if (hex)
		agent.py.version_hex = (uint32_t)agent.py.PyLong_AsLong(hex);
}

/* An audit hook of the next interpreter, of which the agent knows nothing: its hooks and what it has measured were the last one's. */
static int on_another(const char *event, struct pyobj *args, void *data)
{
	static bool told;
	int saved = errno;

	(void)args;
	(void)data;
	early_event(event);
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		control_tell_another();
	errno = saved;
	return 0;
}

/* The interpreter has ended, and a program that embeds it may begin another one: Py_InitializeEx() and Py_AtExit() in CPython's C API. */
static void at_end(void)
{
	agent.phase = AGENT_ENDED;
	if (control_has_channel())
		early_add_hook(on_another);
}

static void set_up(void)
{
	__typeof__(agent.phase) waiting = AGENT_WAITING;
	enum modules modules;

	if (!__atomic_compare_exchange_n(&agent.phase, &waiting, AGENT_SETTING_UP, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	agent_thread.busy = true;
	modules = modules_load();
	if (modules == MODULES_LATE) {
		agent.phase = AGENT_WAITING;
		agent_thread.busy = false;
		return;
	}
	early_stop();
	agent_why("this CPython refuses to load or call its own modules");
	if (agent.py.free_threaded)
		engine_expect_threads();
	if (modules == MODULES_READY && measured() && watch_register()) {
		agent.why[0] = 0;
		read_version();
		for (unsigned i = 0; i < AGENT_HOOKS; i++)
			agent.can |= hooks[i]->usable() ? served_by(hooks[i]) : 0;
		environ_hide();
		cost_measure();
		engine_watch_forks();
		agent.py.Py_AtExit(at_end);
		agent.py.PyErr_Clear();
		agent.phase = AGENT_READY;
		update_hooks();
	} else {
		agent.py.PyErr_Clear();
		agent.phase = AGENT_OFF;
	}
	agent_thread.busy = false;
}

void agent_block_signals(sigset_t *old, bool faults)
{
	static const int spared[] = { 32, 33, 34, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS };
	enum { OF_LIBC = 3, SPARED = sizeof(spared) / sizeof(*spared) };
	sigset_t all;

	memset(&all, 0xff, sizeof(all));
	for (unsigned i = 0; i < (faults ? OF_LIBC : SPARED); i++)
		((unsigned char *)&all)[(spared[i] - 1) / 8] &= (unsigned char)~(1u << (spared[i] - 1) % 8);
	sigprocmask(SIG_SETMASK, &all, old);
}

/*
 * On the program's main thread a signal's handler would run in the midst of the agent's Python, and what it raises, as Ctrl-C does,
 * be lost there.
 */
static void undisturbed(void (*fn)(void))
{
	sigset_t old;

	agent_block_signals(&old, false);
	fn();
	sigprocmask(SIG_SETMASK, &old, NULL);
}

void agent_set_up(void)
{
	undisturbed(set_up);
}

void agent_update_hooks(void)
{
	undisturbed(update_hooks);
}

/* Is this thread in Python's main interpreter, with the GIL, between its start and its end? */
static bool at_safe_point(void)
{
	return agent.py.Py_IsInitialized() && agent.py.PyGILState_Check() &&
	       agent.py.PyInterpreterState_Get() == agent.py.PyInterpreterState_Main();
}

static bool is_outside_frames(void)
{
	return at_safe_point() && !agent.py.PyErr_Occurred() && !agent.py.PyEval_GetFrame();
}

/*
 * Ask once, also if a tracer has just come from outside (agent_entry): the program waits for its hooks, too.  A tracer's agent
 * sets itself up meanwhile in its own thread, whose audit events are no safe points.
 */
static void ask_here(void)
{
	if (!is_outside_frames())
		return;
	agent.asks = false;
	agent.asking = true;
	ask_sessions();
	agent.asking = false;
}

/*
 * Set up at the first safe point, before the program continues without hooks.  Not inside a frame, which would then
 * have a return without an entry: 3.15 counts as initialised only when it is already looking for the program to run.
 */
static void look_here(void)
{
	if (!is_outside_frames())
		return;
	agent_set_up();
	if (agent.phase != AGENT_READY)
		early_forget();
	if (agent.phase < AGENT_READY)
		return;
	control_greet();
	control_first_look(agent_update_hooks);
	early_replay();
	if (agent.phase == AGENT_READY)
		watch_start();
}

/* PyGILState_Check() always returns 1 once a second interpreter has been created. */
static bool has_thread(void)
{
	return !agent.py.PyThreadState_GetUnchecked || agent.py.PyThreadState_GetUnchecked();
}

/* It may have a GIL of its own (PEP 684, 3.12), and objects of it may not be kept. */
static bool is_in_subinterpreter(void)
{
	return agent.py.PyInterpreterState_Get() != agent.py.PyInterpreterState_Main();
}

static int on_audit(const char *event, struct pyobj *args, void *data)
{
	int saved = errno;
	bool sub;

	(void)data;
	agent.audit_hook = AUDIT_CALLED;
	early_event(event);
	if (agent_thread.busy)
		return 0;
	if (agent.asks && !environ_is_held() && !watch_closing())
		ask_here();
	if (!watch_closing() && agent.phase == AGENT_WAITING && !agent.asking) {
		if (control_has_channel())
			early_watch();
		look_here();
	}
	/* Its own tracer's hooks are installed, so the others find an agent that is ready. */
	if (agent.asks && environ_is_held() && agent.phase != AGENT_WAITING && !watch_closing())
		ask_here();
	if (agent.tasks.waits && at_safe_point())
		task_loaded();
	if (slot_displaced(event))
		__atomic_store_n(&agent.displaced, true, __ATOMIC_RELAXED);
	if (agent_changed())
		watch_start();
	sub = agent.py.PyGILState_Check() && subinterp_event(event, args);
	if (!sub && threads_watched() && agent.py.minor >= 12 &&
	    !strncmp(event, "_thread.start_", sizeof("_thread.start_") - 1))
		threads_expect(args);
	if (marker_wanted(audit) || (agent.phase < AGENT_READY && marker_raised(audit)))
		marker_audit(event, args);
	if (engine_wanted(audit) && agent.py.PyGILState_Check() && has_thread()) {
		const uint64_t words[ABI_MARKER_ARGS] = { (uint64_t)(uintptr_t)event, (uint64_t)(uintptr_t)args };

		agent_thread.arguments = args;
		(is_in_subinterpreter() ? engine_run_sub : engine_fire)(ABI_MARKER_audit, words, MARKER_TEXTS_audit);
		agent_thread.arguments = NULL;
	}
	errno = saved;
	return 0;
}

/*
 * An audit hook can never be removed, and makes events slower, so a running process gets it only when it is needed.
 * Another audit hook can refuse it silently: to find out, an audit event that every version has is raised.
 */
bool agent_audits(void)
{
	struct pyobj *builtins;

	if (agent.audit_hook == AUDIT_CALLED)
		return true;
	if (agent.audit_hook == AUDIT_NONE && agent.py.PySys_AddAuditHook(on_audit, NULL) == 0)
		agent.audit_hook = AUDIT_ADDED;
	agent.py.PyErr_Clear();
	builtins = modules_get("builtins");
	if (builtins)
		agent_release(agent.py.PyObject_CallMethod(builtins, "id", "O", agent.py.none));
	agent_release(builtins);
	agent.py.PyErr_Clear();
	if (agent.audit_hook == AUDIT_CALLED)
		return true;
	agent.audit_hook = AUDIT_NONE;
	agent_why("audit: another audit hook of the program refuses one more");
	return false;
}

static bool audit_usable(void)
{
	return true;
}

static unsigned audit_update(unsigned wants)
{
	return wants && agent_audits() ? wants : 0;
}

const struct hook hook_audit = { WANT_audit, WANT_audit, audit_usable, audit_update };

static bool resolve(void)
{
	const char *why;

	if (agent.resolved)
		return agent.phase < AGENT_OFF;
	agent.resolved = true;
	why = capi_resolve(&agent.py);
	if (!why) {
		if (agent.py.rseq_offset && agent.py.rseq_size && *agent.py.rseq_size)
			shm_use_rseq(*agent.py.rseq_offset);
		return true;
	}
	agent.phase = AGENT_OFF;
	agent_why(why);
	return false;
}

/* The layout of a note: System V ABI, chapter 5, "Note Section". */
static const struct {
	uint32_t owner_size, size, type;
	char owner[12];			/* padded to 4 bytes */
	struct abi_agent_versions versions;
} note __attribute__((section(".note.dtap.agent"), used, aligned(4))) = {
	sizeof(ABI_AGENT_OWNER), sizeof(struct abi_agent_versions), ABI_AGENT_VERSIONS, ABI_AGENT_OWNER,
	{ ABI_VERSION, ABI_AGENT_VERSION },
};

/*
 * The object's ELF entry point: a tracer connects to a running process (abi/agent.h).  @fd is always taken over, and
 * closed on failure: the tracer may have died meanwhile.  Called in any thread, without the GIL, where the thread holds
 * no lock of the C library; no function of Python's is called but those that say what and how far it is.  0; or -errno:
 * -EAGAIN before the interpreter has started and amid a fork, in the child, -ENOEXEC if this is not a CPython that the
 * agent knows (a HELLO says why), -EPERM if the creator of the channel is neither this user nor root, -EUSERS with too
 * many tracers, others from starting a thread.  @how: system calls that would kill the process, and whether the program
 * waits, as abi/ask.h describes.
 */
int agent_entry(int fd, uint32_t how);

int agent_entry(int fd, uint32_t how)
{
	uint32_t wait_ms = how >> ABI_ENTRY_WAIT_SHIFT;
	int saved = errno, err;
	unsigned row;

	calls_forbid(how & ABI_ENTRY_CALLS);
	if (watch_is_in_fork() || (!agent.resolved && !capi_is_begun())) {
		err = -EAGAIN;
	} else if (!resolve()) {
		err = -ENOEXEC;
		control_refuse(fd);
	} else if (!agent.py.Py_IsInitialized()) {
		err = -EAGAIN;
	} else {
		err = control_add(fd, wait_ms, &row);
		if (!err) {
			err = watch_start();
			if (err)
				control_take_back(row);
			else if (wait_ms)
				control_await(row, wait_ms);
			else
				watch_hold_main_thread();
			errno = saved;
			return err;
		}
	}
	close(fd);
	errno = saved;
	return err;
}

/* Has a tracer had a running program load this object? */
static bool is_brought(void)
{
	const char *name = capi_own_name();

	return name && !strncmp(name, ABI_AGENT_BROUGHT, sizeof(ABI_AGENT_BROUGHT) - 1);
}

/*
 * Called when the agent is preloaded, or loaded by the interpreter itself at its start (then that is running).  Does
 * nothing without a listening tracer, unless foreign listeners must be served; nor where a tracer has brought it.
 */
__attribute__((constructor)) static void start(void)
{
	const char *poll = getenv("DTAP_AGENT_POLL");
	bool polling = poll && !strcmp(poll, "1");

	if (is_brought())
		return;
	environ_take_held();
	environ_take_lent();
	if (!polling && !environ_address())
		return;
	if (!resolve()) {
		if (agent.py.minor && !control_connect())
			control_greet();
		return;
	}
	if (polling)
		watch_poll();
	agent.asks = polling || environ_is_held();
	/* The interpreter loads its own copy after a preloaded one, which has connected: with both, each event is two. */
	agent.is_second = polling && (environ_address() || ask_is_possible()) && copies_other();
	if (control_connect() && !agent.asks)
		return;
	/*
	 * If loaded at the interpreter's start, the loading thread sets the agent up at its next safe point: the
	 * agent's own thread might get the GIL only when a short program is already ending.
	 */
	if (agent.py.Py_IsInitialized() && !agent.py.PyGILState_Check()) {
		watch_start();
		return;
	}
	if (!agent.py.Py_IsInitialized()) {
		if (early_add_hook(on_audit))
			agent.audit_hook = AUDIT_ADDED;
	} else if (agent.py.PySys_AddAuditHook(on_audit, NULL) == 0) {
		agent.audit_hook = AUDIT_ADDED;
	} else {
		agent.py.PyErr_Clear();
	}
}
