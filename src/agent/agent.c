/* SPDX-License-Identifier: MIT */
/*
 * The agent's life: getting started, watching for listeners, fork and exit.
 *
 * Preloaded, it is there before the interpreter.  An audit hook may be added even then; its first call in an
 * initialised interpreter is a safe point that holds the GIL, where the rest is set up.  Other processes of a
 * preloaded tree (no CPython, or one of an unsupported kind) keep an object that does nothing.
 *
 * Listeners are known by the markers' semaphores.  A thread looks at them every 100 ms, touching nothing of Python until
 * something changed; then it takes the GIL and changes the hooks.  The audit hook looks, too.  Until there is a
 * channel from the tracer to the agent, DTAP_AGENT_POLL=1 in the environment is what asks for all this; without
 * it the agent does nothing.
 */
#include "agent/agent.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/code.h"

struct agent agent;
__thread bool agent_busy;

/* The first hook of the table that serves a marker and is usable supplies it. */
static const struct hook *const hooks[] = {
	&hook_monitoring, &hook_profile, &hook_trace, &hook_gc, &hook_import,
};

/*
 * Between the watching thread and the end of the interpreter.  The thread says that it is going to take the GIL, then
 * looks whether the end has begun; the end is announced, then waits until the thread is not taking the GIL.
 */
static int taking_gil, closing;		/* atomic, sequentially consistent */

/* Installing a hook may let another thread take the GIL, which must not start over in the middle. */
static bool updating;

/* With the GIL, in the main interpreter, no exception set. */
static void update_hooks(void)
{
	static unsigned supplied[sizeof(hooks) / sizeof(*hooks)];
	unsigned listeners = marker_listeners(), left = listeners;
	bool was_busy = agent_busy;

	if (updating)
		return;
	updating = agent_busy = true;
	__atomic_store_n(&agent.installed, listeners, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
		unsigned wants = left & hooks[i]->serves;

		if (!hooks[i]->usable())
			continue;
		left &= ~wants;
		if (wants != supplied[i])
			supplied[i] = hooks[i]->update(wants);
		agent.py.PyErr_Clear();
	}
	updating = false;
	agent_busy = was_busy;
}

static bool changed(void)
{
	return marker_listeners() != __atomic_load_n(&agent.installed, __ATOMIC_RELAXED);
}

/*
 * The watching thread: 0 none, 1 starting, else its kernel thread id; atomic.  @leave is a futex: 1 asks the thread
 * to end.
 */
static int watcher, leave;

static void watch(void *unused)
{
	const struct timespec period = { .tv_nsec = 100000000 };

	(void)unused;
	__atomic_store_n(&watcher, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&closing, __ATOMIC_SEQ_CST) && !__atomic_load_n(&leave, __ATOMIC_SEQ_CST)) {
		syscall(SYS_futex, &leave, FUTEX_WAIT_PRIVATE, 0, &period, NULL, 0);
		if (!changed())
			continue;
		__atomic_store_n(&taking_gil, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&closing, __ATOMIC_SEQ_CST) && !__atomic_load_n(&leave, __ATOMIC_SEQ_CST)) {
			int state = agent.py.PyGILState_Ensure();

			update_hooks();
			agent.py.PyGILState_Release(state);
		}
		__atomic_store_n(&taking_gil, 0, __ATOMIC_SEQ_CST);
	}
}

/* The program's signals are not for this thread. */
static bool start_watching(void)
{
	sigset_t all, old;
	bool started;

	if (__atomic_load_n(&watcher, __ATOMIC_SEQ_CST) || __atomic_load_n(&closing, __ATOMIC_SEQ_CST))
		return true;
	__atomic_store_n(&leave, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&watcher, 1, __ATOMIC_SEQ_CST);
	memset(&all, 0xff, sizeof(all));
	sigprocmask(SIG_SETMASK, &all, &old);
	started = agent.py.PyThread_start_new_thread(watch, NULL) != (unsigned long)-1;
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (!started)
		__atomic_store_n(&watcher, 0, __ATOMIC_SEQ_CST);
	return started;
}

/*
 * Have the watching thread end and wait until the kernel has forgotten it (some 50 us), giving up after a tenth of a
 * second.  The caller holds the GIL, which the thread may be about to take.
 */
static void stop_watching(void)
{
	const struct timespec wait = { .tv_nsec = 20000 };
	int pid = (int)syscall(SYS_getpid);
	void *thread;

	if (!__atomic_load_n(&watcher, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &leave, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	thread = agent.py.PyEval_SaveThread();
	for (int i = 0; i < 1000; i++) {
		int tid = __atomic_load_n(&watcher, __ATOMIC_SEQ_CST);

		if (tid > 1 && syscall(SYS_tgkill, pid, tid, 0) < 0) {
			__atomic_store_n(&watcher, 0, __ATOMIC_SEQ_CST);
			break;
		}
		nanosleep(&wait, NULL);
	}
	if (__atomic_load_n(&watcher, __ATOMIC_SEQ_CST))
		__atomic_store_n(&leave, 0, __ATOMIC_SEQ_CST);
	agent.py.PyEval_RestoreThread(thread);
}

/* A pending call: the main thread runs it between two instructions. */
static int watch_again(void *unused)
{
	(void)unused;
	start_watching();
	return 0;
}

/*
 * Forking.  From 3.12 on os.fork() counts the process's threads, before and even after the callbacks in the parent,
 * and warns if there are several: the watching thread is not there then.
 */
static struct pyobj *before_fork(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	int saved = errno;

	(void)self;
	(void)args;
	(void)nargs;
	stop_watching();
	errno = saved;
	return agent_none();
}

static struct pyobj *after_fork_parent(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	(void)self;
	(void)args;
	(void)nargs;
	agent.py.Py_AddPendingCall(watch_again, NULL);
	return agent_none();
}

/* The child has none of its parent's threads. */
static struct pyobj *after_fork_child(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	int saved = errno;

	(void)self;
	(void)args;
	(void)nargs;
	__atomic_store_n(&taking_gil, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&watcher, 0, __ATOMIC_SEQ_CST);
	updating = false;
	start_watching();
	errno = saved;
	return agent_none();
}

static struct pyobj *at_exit(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	const struct timespec wait = { .tv_nsec = 1000000 };
	int saved = errno;

	(void)self;
	(void)args;
	(void)nargs;
	__atomic_store_n(&closing, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&taking_gil, __ATOMIC_SEQ_CST)) {
		void *thread = agent.py.PyEval_SaveThread();

		nanosleep(&wait, NULL);
		agent.py.PyEval_RestoreThread(thread);
	}
	errno = saved;
	return agent_none();
}

static bool call_at(const char *module_name, const char *function, const char *keyword, struct capi_method *def)
{
	const struct capi *py = &agent.py;
	struct pyobj *module = py->PyImport_ImportModule(module_name), *callable = agent_callable(def);
	struct pyobj *result = NULL, *fn = NULL, *args = NULL, *kwargs = NULL;

	if (!module || !callable)
		goto out;
	if (!keyword) {
		result = py->PyObject_CallMethod(module, function, "O", callable);
		goto out;
	}
	fn = py->PyObject_GetAttrString(module, function);
	args = py->PyTuple_New(0);
	kwargs = py->PyDict_New();
	if (fn && args && kwargs && !py->PyDict_SetItemString(kwargs, keyword, callable))
		result = py->PyObject_Call(fn, args, kwargs);
out:
	agent_release(kwargs);
	agent_release(args);
	agent_release(fn);
	agent_release(callable);
	agent_release(module);
	agent_release(result);
	return result != NULL;
}

/* An interpreter without a GIL needs locks that the hooks do not take. */
static bool has_gil(void)
{
	struct pyobj *flags = agent.py.PySys_GetObject("abiflags");
	const char *text = flags ? agent.py.PyUnicode_AsUTF8(flags) : NULL;

	return text && !strchr(text, 't');
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

/* At the first safe point.  Whatever fails leaves an agent that does nothing. */
static void set_up(void)
{
	static struct capi_method before_method = { "dtap_before_fork", before_fork, CAPI_FASTCALL, NULL };
	static struct capi_method parent_method = { "dtap_after_fork", after_fork_parent, CAPI_FASTCALL, NULL };
	static struct capi_method child_method = { "dtap_in_child", after_fork_child, CAPI_FASTCALL, NULL };
	static struct capi_method exit_method = { "dtap_exit", at_exit, CAPI_FASTCALL, NULL };

	agent_busy = true;
	agent.phase = AGENT_OFF;
	if (has_gil() && code_measure() && load_modules() &&
	    call_at("posix", "register_at_fork", "before", &before_method) &&
	    call_at("posix", "register_at_fork", "after_in_parent", &parent_method) &&
	    call_at("posix", "register_at_fork", "after_in_child", &child_method) &&
	    call_at("atexit", "register", NULL, &exit_method) && start_watching())
		agent.phase = AGENT_READY;
	agent.py.PyErr_Clear();
	agent_busy = false;
}

/* Is this thread in Python's main interpreter, with the GIL, between its start and its end? */
static bool at_safe_point(void)
{
	return agent.py.Py_IsInitialized() && agent.py.PyGILState_Check() &&
	       agent.py.PyInterpreterState_Get() == agent.py.PyInterpreterState_Main();
}

static int on_audit(const char *event, struct pyobj *args, void *data)
{
	int saved = errno;

	(void)data;
	if (agent_busy)
		return 0;
	if (agent.phase != AGENT_OFF && !__atomic_load_n(&closing, __ATOMIC_RELAXED) &&
	    (agent.phase == AGENT_WAITING || changed()) && at_safe_point() && !agent.py.PyErr_Occurred()) {
		if (agent.phase == AGENT_WAITING)
			set_up();
		if (agent.phase == AGENT_READY)
			update_hooks();
	}
	if (hook_trace_per_thread() && agent.py.minor >= 12 &&
	    !strncmp(event, "_thread.start_", sizeof("_thread.start_") - 1))
		threads_expect();
	if (marker_wanted(audit))
		marker_audit(event, args);
	errno = saved;
	return 0;
}

__attribute__((constructor)) static void start(void)
{
	const char *poll = getenv("DTAP_AGENT_POLL");

	if (!poll || strcmp(poll, "1") || !capi_resolve(&agent.py))
		return;
	agent.py.PySys_AddAuditHook(on_audit, NULL);
}
