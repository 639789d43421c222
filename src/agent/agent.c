/* SPDX-License-Identifier: MIT */
/*
 * The agent's life: getting in, setting up, choosing hooks.
 *
 * Preloaded, it is there before the interpreter.  An audit hook may be added even then; its first call in an
 * initialised interpreter is a safe point that holds the GIL, where the rest is set up.  Loaded into a running
 * process, it is entered by agent_entry(), and its own thread takes the GIL.  Other processes of a preloaded tree
 * (no CPython, or one of an unsupported kind) keep an object that does nothing.
 */
#include "agent/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/agent.h"
#include "agent/code.h"
#include "agent/control.h"
#include "agent/engine.h"
#include "agent/environ.h"
#include "agent/slot.h"
#include "agent/watch.h"

struct agent agent;
__thread bool agent_busy;

static const struct hook hook_audit;

/* The first hook of the table that serves a marker and is usable supplies it. */
static const struct hook *const hooks[] = {
	&hook_monitoring, &hook_eval, &hook_profile, &hook_trace, &hook_gc, &hook_import, &hook_thread,
	&hook_audit,
};

enum { HOOKS = sizeof(hooks) / sizeof(*hooks) };

/* Installing a hook may let another thread take the GIL, which must not start over in the middle. */
static bool updating;
static bool displaced;			/* C code may have taken a slot (slot.h); atomic */

/* The markers to be fired, of those that are supplied. */
static unsigned raised(void)
{
	return marker_raised_mask() & ~control_left();
}

unsigned agent_listeners(void)
{
	return raised() | engine_markers;
}

void agent_update_hooks(void)
{
	static unsigned supplied[HOOKS];
	unsigned listeners, left;
	bool was_busy = agent_busy;

	if (updating)
		return;
	updating = agent_busy = true;
	agent.why[0] = 0;
	engine_update();
	__atomic_store_n(&marker_mask, raised(), __ATOMIC_RELAXED);
	left = listeners = marker_mask | engine_markers;
	if (__atomic_exchange_n(&displaced, false, __ATOMIC_RELAXED))
		hook_trace_again();
	__atomic_store_n(&agent.installed, listeners, __ATOMIC_RELAXED);
	agent.supplied = 0;
	for (unsigned i = 0; i < HOOKS; i++) {
		unsigned wants = left & hooks[i]->serves;

		if (!hooks[i]->usable())
			continue;
		left &= ~wants;
		if (wants != supplied[i])
			supplied[i] = hooks[i]->update(wants);
		agent.supplied |= supplied[i];
		agent.py.PyErr_Clear();
	}
	updating = false;
	agent_busy = was_busy;
}

bool agent_changed(void)
{
	return agent.phase == AGENT_READY &&
	       (__atomic_load_n(&displaced, __ATOMIC_RELAXED) || engine_changed() ||
		raised() != __atomic_load_n(&marker_mask, __ATOMIC_RELAXED) ||
		agent_listeners() != __atomic_load_n(&agent.installed, __ATOMIC_RELAXED));
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
	updating = false;
	engine_forked();
}

/* An interpreter without a GIL needs locks that the hooks do not take. */
static bool has_gil(void)
{
	struct pyobj *flags = agent.py.PySys_GetObject("abiflags");
	const char *text = flags ? agent.py.PyUnicode_AsUTF8(flags) : NULL;

	if (text && !strchr(text, 't'))
		return true;
	agent_why("a free-threaded CPython");
	return false;
}

static bool measured(void)
{
	if (code_measure())
		return true;
	agent_why("the layout of this CPython's code objects cannot be told");
	return false;
}

/* The modules that hooks use, so that nothing of Python runs when they are installed. */
static bool load_modules(void)
{
	static const char *const names[] = { "gc", "_thread", "_frozen_importlib" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct pyobj *module = agent.py.PyImport_ImportModule(names[i]);

		agent_release(module);
		if (!module)
			return false;
	}
	return true;
}

static void read_version(void)
{
	struct pyobj *hex = agent.py.PySys_GetObject("hexversion");

	if (hex)
		agent.py.version_hex = (uint32_t)agent.py.PyLong_AsLong(hex);
}

void agent_set_up(void)
{
	if (agent.phase != AGENT_WAITING)
		return;
	agent_busy = true;
	agent.phase = AGENT_SETTING_UP;
	agent_why("this CPython refuses to load or call its own modules");
	if (has_gil() && measured() && load_modules() && watch_register()) {
		agent.why[0] = 0;
		read_version();
		for (unsigned i = 0; i < HOOKS; i++)
			agent.can |= hooks[i]->usable() ? hooks[i]->serves : 0;
		environ_hide();
		engine_watch_forks();
		agent.py.PyErr_Clear();
		agent.phase = AGENT_READY;
		agent_update_hooks();
	} else {
		agent.py.PyErr_Clear();
		agent.phase = AGENT_OFF;
	}
	agent_busy = false;
}

/* Is this thread in Python's main interpreter, with the GIL, between its start and its end? */
static bool at_safe_point(void)
{
	return agent.py.Py_IsInitialized() && agent.py.PyGILState_Check() &&
	       agent.py.PyInterpreterState_Get() == agent.py.PyInterpreterState_Main();
}

/*
 * The first safe point: the program must not get further without its hooks.  Not inside of a frame, whose return would
 * be one without an entry: 3.15 counts as initialised only while it looks for the program to run.
 */
static void look_here(void)
{
	if (!at_safe_point() || agent.py.PyErr_Occurred() || agent.py.PyEval_GetFrame())
		return;
	agent_set_up();
	if (agent.phase < AGENT_READY)
		return;
	control_greet();
	control_first_look(agent_update_hooks);
	if (agent.phase == AGENT_READY)
		watch_start();
}

static enum { AUDIT_NONE, AUDIT_ADDED, AUDIT_CALLED } audit_hook;

/* PyGILState_Check() does not tell any more once there has been another interpreter. */
static bool has_thread(void)
{
	return !agent.py.PyThreadState_GetUnchecked || agent.py.PyThreadState_GetUnchecked();
}

/* Is this another interpreter than the main one, which may have a GIL of its own (PEP 684, 3.12)? */
static bool has_other_gil(void)
{
	return agent.py.minor >= 12 && agent.py.PyInterpreterState_Get() != agent.py.PyInterpreterState_Main();
}

static int on_audit(const char *event, struct pyobj *args, void *data)
{
	int saved = errno;

	(void)data;
	audit_hook = AUDIT_CALLED;
	if (agent_busy)
		return 0;
	if (!watch_closing() && agent.phase == AGENT_WAITING)
		look_here();
	if (slot_displaced(event))
		__atomic_store_n(&displaced, true, __ATOMIC_RELAXED);
	if (agent_changed())
		watch_start();
	if (threads_watched() && agent.py.minor >= 12 &&
	    !strncmp(event, "_thread.start_", sizeof("_thread.start_") - 1))
		threads_expect();
	if (marker_wanted(audit) || (agent.phase < AGENT_READY && marker_raised(audit)))
		marker_audit(event, args);
	if (engine_wanted(audit) && agent.py.PyGILState_Check() && has_thread()) {
		const uint64_t words[ENGINE_ARGS] = { (uint64_t)(uintptr_t)event, (uint64_t)(uintptr_t)args };

		(has_other_gil() ? engine_run_beside : engine_fire)(WANT_INDEX_audit, words, 1);
	}
	errno = saved;
	return 0;
}

/*
 * An audit hook stays for ever, and events cost more while there is one, so a running process gets it when it is
 * wanted.  Another audit hook can refuse it and nobody is told: an event that every version has is raised to see.
 */
bool agent_audits(void)
{
	struct pyobj *builtins;

	if (audit_hook == AUDIT_CALLED)
		return true;
	if (audit_hook == AUDIT_NONE && agent.py.PySys_AddAuditHook(on_audit, NULL) == 0)
		audit_hook = AUDIT_ADDED;
	agent.py.PyErr_Clear();
	builtins = agent.py.PyImport_ImportModule("builtins");
	if (builtins)
		agent_release(agent.py.PyObject_CallMethod(builtins, "id", "O", agent.py.none));
	agent_release(builtins);
	agent.py.PyErr_Clear();
	if (audit_hook == AUDIT_CALLED)
		return true;
	audit_hook = AUDIT_NONE;
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

static const struct hook hook_audit = { WANT_audit, audit_usable, audit_update };

static bool resolve(void)
{
	const char *why;

	if (agent.resolved)
		return agent.phase != AGENT_OFF;
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

/*
 * The object's ELF entry point: how a tracer introduces itself to a running process (abi/agent.h).  @fd is the
 * agent's from then on, and closed if it is not taken: the tracer may have died meanwhile.  Called in any thread, without
 * the GIL, where the thread holds no lock of the C library.  0; or -errno: -EAGAIN before the interpreter has started, -ENOEXEC when this is no
 * CPython that the agent knows (a HELLO says why), -EPERM when another user than this one or root has made the
 * channel, -EUSERS with too many tracers, others from starting a thread.
 */
int agent_entry(int fd);

int agent_entry(int fd)
{
	int saved = errno, err;

	if (!resolve()) {
		err = -ENOEXEC;
		control_refuse(fd);
	} else if (!agent.py.Py_IsInitialized()) {
		err = -EAGAIN;
	} else {
		err = control_add(fd);
		if (!err) {
			errno = saved;
			return watch_start();
		}
	}
	close(fd);
	errno = saved;
	return err;
}

/*
 * Preloaded, or loaded by the interpreter itself at its start (then it is running).  Without a tracer that listens
 * nothing happens, unless foreign listeners are to be served.
 */
__attribute__((constructor)) static void start(void)
{
	const char *poll = getenv("DTAP_AGENT_POLL");
	bool polling = poll && !strcmp(poll, "1");

	if (!polling && !getenv(ABI_AGENT_ENV))
		return;
	if (!resolve()) {
		if (agent.py.minor && !control_connect())
			control_greet();
		return;
	}
	if (polling)
		watch_poll();
	if (control_connect() && !polling)
		return;
	/*
	 * The thread that loads the agent at the interpreter's start sets it up, too, at its next safe point: a thread
	 * of the agent could come to it only when a short program is ending.
	 */
	if (agent.py.Py_IsInitialized() && !agent.py.PyGILState_Check()) {
		watch_start();
		return;
	}
	if (agent.py.PySys_AddAuditHook(on_audit, NULL) == 0)
		audit_hook = AUDIT_ADDED;
	else if (agent.py.Py_IsInitialized())
		agent.py.PyErr_Clear();
}
