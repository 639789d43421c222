/* SPDX-License-Identifier: MIT */
/*
 * The agent's thread; fork and the interpreter's end.
 *
 * Listeners are known by the markers' semaphores.  A tracer with a channel says when they have changed; when a
 * channel ends, the kernel is lowering its tracer's semaphores, and the thread looks for a second.  Nobody tells
 * of foreign listeners: with DTAP_AGENT_POLL=1, and while hooks are there that no channel stands for, it looks
 * every 100 ms.  It touches nothing of Python until something has changed; then it takes the GIL.
 */
#include "agent/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/control.h"
#include "agent/engine.h"

enum { PERIOD_MS = 100, AFTER_END_LOOKS = 19, AFTER_END_FIRST_MS = 10 };

/*
 * Between the thread and the end of the interpreter.  The thread says that it is going to take the GIL, then
 * looks whether the end has begun; the end is announced, then waits until the thread is not taking the GIL.
 * That is so from agent_set_up() on, which takes the GIL itself: of an end that begins before, or by a program that
 * has cleared atexit's list, the interpreter must tell.  Until atexit's functions have run it says nothing, and takes a
 * new thread as any other; if the end then overtakes this one, it ends, or sleeps for good (3.14), as daemon threads do.
 */
static int taking_gil, closing;		/* atomic, sequentially consistent */

/* The thread: 0 none, 1 starting, else its kernel thread id; atomic.  @leave asks it to end. */
static int watcher, leave;
static int watcher_pid;			/* the process it was started in */
static bool polling;

bool watch_closing(void)
{
	return __atomic_load_n(&closing, __ATOMIC_SEQ_CST);
}

void watch_poll(void)
{
	polling = true;
}

static bool leaving(void)
{
	return __atomic_load_n(&leave, __ATOMIC_SEQ_CST);
}

static bool has_interpreter(void)
{
	int (*ending)(void) = agent.py.Py_IsFinalizing ? agent.py.Py_IsFinalizing : agent.py._Py_IsFinalizing;

	return agent.py.Py_IsInitialized() && !(ending && ending());
}

static void with_gil(void (*fn)(void))
{
	__atomic_store_n(&taking_gil, 1, __ATOMIC_SEQ_CST);
	if (!watch_closing() && !leaving() && has_interpreter()) {
		int state = agent.py.PyGILState_Ensure();

		fn();
		agent.py.PyGILState_Release(state);
	}
	__atomic_store_n(&taking_gil, 0, __ATOMIC_SEQ_CST);
}

/* Semaphores may have changed, or what was missing may be there now. */
static void look(void)
{
	if (agent.phase == AGENT_READY && (agent_changed() || agent_listeners() != agent.supplied))
		with_gil(agent_update_hooks);
}

static bool hooked_for_others(void)
{
	return __atomic_load_n(&agent.installed, __ATOMIC_RELAXED) && !control_has_channel();
}

/* Nothing left to do?  Then the thread is gone for whoever wants to start one. */
static bool finished(int self)
{
	int none = 0;

	if (polling || control_has_channel() || hooked_for_others())
		return false;
	__atomic_store_n(&watcher, 0, __ATOMIC_SEQ_CST);
	return !control_has_channel() ||
	       !__atomic_compare_exchange_n(&watcher, &none, self, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void *watch(void *unused)
{
	struct pollfd polled[CONTROL_POLLED];
	int self = (int)syscall(SYS_gettid), looks = 0;

	(void)unused;
	__atomic_store_n(&watcher, self, __ATOMIC_SEQ_CST);
	while (!leaving()) {
		int timeout_ms = -1, n = control_waits(polled);

		if (agent.phase < AGENT_READY)
			with_gil(agent_set_up);
		if (agent.phase >= AGENT_READY)
			control_greet();
		if (agent_changed())
			look();
		if (looks)
			timeout_ms = --looks < AFTER_END_LOOKS / 2 ? PERIOD_MS : AFTER_END_FIRST_MS;
		else if (polling || hooked_for_others())
			timeout_ms = PERIOD_MS;
		else if (finished(self))
			return NULL;
		poll(polled, (unsigned)n, timeout_ms);
		if (control_serve(polled, n, look))
			looks = AFTER_END_LOOKS;
	}
	return NULL;
}

/* The program's signals are not for this thread; those by which a C library stops all threads are. */
static int start_thread(void)
{
	enum { LIBC_FIRST = 32, LIBC_LAST = 34 };
	sigset_t all, old;
	void *thread;
	int err;

	memset(&all, 0xff, sizeof(all));
	for (int signal = LIBC_FIRST; signal <= LIBC_LAST; signal++)
		((unsigned char *)&all)[(signal - 1) / 8] &= (unsigned char)~(1u << (signal - 1) % 8);
	sigprocmask(SIG_SETMASK, &all, &old);
	err = agent.py.pthread_create(&thread, NULL, watch, NULL);
	if (!err)
		agent.py.pthread_detach(thread);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return -err;
}

/* A child of fork has none of its parent's threads. */
static void forget_thread(void)
{
	__atomic_store_n(&taking_gil, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&watcher, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&leave, 0, __ATOMIC_SEQ_CST);
}

int watch_start(void)
{
	int none = 0, err, pid = (int)syscall(SYS_getpid);

	if (watch_closing())
		return -ESHUTDOWN;
	if (watcher_pid && watcher_pid != pid)
		forget_thread();	/* C code has forked */
	watcher_pid = pid;
	err = control_make_waker();
	if (err)
		return err;
	if (!__atomic_compare_exchange_n(&watcher, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		control_wake();
		return 0;
	}
	__atomic_store_n(&leave, 0, __ATOMIC_SEQ_CST);
	err = start_thread();
	if (err)
		__atomic_store_n(&watcher, 0, __ATOMIC_SEQ_CST);
	return err;
}

/*
 * Have the thread end and wait until the kernel has forgotten it (some 50 us), giving up after a second,
 * which only a machine short of processors needs.  The caller holds the GIL, which the thread may be about to take.
 */
static void stop(void)
{
	const struct timespec wait = { .tv_nsec = 20000 };
	int pid = (int)syscall(SYS_getpid);
	void *thread;

	if (!__atomic_load_n(&watcher, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
	control_wake();
	thread = agent.py.PyEval_SaveThread();
	for (int i = 0; i < 14000; i++) {
		int tid = __atomic_load_n(&watcher, __ATOMIC_SEQ_CST);

		if (tid != 1 && (!tid || syscall(SYS_tgkill, pid, tid, 0) < 0)) {
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
	int saved = errno;

	(void)unused;
	if (control_has_channel() || polling || hooked_for_others())
		watch_start();
	errno = saved;
	return 0;
}

/*
 * Forking.  From 3.12 on os.fork() counts the process's threads, before and even after the callbacks in the parent,
 * and warns if there are several.  A thread other than the main one that forks is warned anyway.
 */
static bool is_counted(void)
{
	return agent.py.minor >= 12 && syscall(SYS_gettid) == syscall(SYS_getpid);
}

static struct pyobj *before_fork(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	int saved = errno;

	(void)self;
	(void)args;
	(void)nargs;
	if (is_counted())
		stop();
	errno = saved;
	return agent_none();
}

static struct pyobj *after_fork_parent(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	(void)self;
	(void)args;
	(void)nargs;
	if (is_counted())
		agent.py.Py_AddPendingCall(watch_again, NULL);
	return agent_none();
}

static struct pyobj *after_fork_child(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	int saved = errno;

	(void)self;
	(void)args;
	(void)nargs;
	forget_thread();
	agent_forked();
	control_forked();
	if (!control_has_channel())
		engine_orphaned();
	watch_again(NULL);
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

bool watch_register(void)
{
	static struct capi_method before_method = { "dtap_before_fork", before_fork, CAPI_FASTCALL, NULL };
	static struct capi_method parent_method = { "dtap_after_fork", after_fork_parent, CAPI_FASTCALL, NULL };
	static struct capi_method child_method = { "dtap_in_child", after_fork_child, CAPI_FASTCALL, NULL };
	static struct capi_method exit_method = { "dtap_exit", at_exit, CAPI_FASTCALL, NULL };

	return call_at("posix", "register_at_fork", "before", &before_method) &&
	       call_at("posix", "register_at_fork", "after_in_parent", &parent_method) &&
	       call_at("posix", "register_at_fork", "after_in_child", &child_method) &&
	       call_at("atexit", "register", NULL, &exit_method);
}
