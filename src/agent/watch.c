/* SPDX-License-Identifier: MIT */
/*
 * The agent's thread; fork and the interpreter's end.
 *
 * The markers' semaphores tell whether there are listeners.  A tracer with a channel reports their changes.  When a
 * channel ends, the kernel is still lowering its tracer's semaphores, so the thread looks at them for a second.
 * Changes by foreign listeners are not reported: with DTAP_AGENT_POLL=1, and while there are hooks and no channel, the
 * thread looks every 100 ms.  It does not touch Python until something has changed; then it takes the GIL.
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
#include "agent/breaker.h"
#include "agent/control.h"
#include "agent/early.h"
#include "agent/engine.h"
#include "agent/modules.h"

enum { PERIOD_MS = 100, AFTER_END_LOOKS = 19, AFTER_END_FIRST_MS = 10, AGAIN_MS = 5, ANSWER_MS = 1000 };
enum { LET_GO_NAPS = 30, STAY_MS = 1000, FULL_NAPS = 100 };

/*
 * The thread and the end of the interpreter.  The thread sets taking_gil, then checks closing; at_exit() sets closing,
 * then waits until taking_gil is clear.  This works after agent_set_up(), which registers it.
 *
 * A thread that the end overtakes ends, or sleeps forever (3.14), like a daemon thread; but what such a thread waits for, as
 * the lock of the pending calls, is freed nevertheless, and then the thread writes there (CPython's
 * Python/pylifecycle.c).  So the set-up has a pending call before it takes the GIL.  The main thread runs it before it ends the
 * interpreter (Py_FinalizeEx()), and stays in it until the thread is through (let_go()).  If it was stopped to load the agent, it
 * does not go on before that call is queued (watch_hold_main_thread()).
 *
 * What remains: if the program has cleared atexit's list, or another thread has loaded the agent just when the main thread ends,
 * only the interpreter can tell (has_interpreter()).  It does not tell until atexit's functions have run.
 *
 * The thread and a fork by another thread: the same, with forking.  Before a thread gets the GIL, the interpreter
 * creates a thread state under a lock.  Up to 3.11 the child of a fork takes that lock before it reinitialises it: if
 * the parent's thread held it at the fork, the child waits forever.  C code that forks calls none of this: its child finds
 * what the parent's thread was about to do (look_at_fork()).
 *
 * When a thread that was asked to end has cleared agent.watch.thread, another one can be started; the fork that asked
 * waits for agent.watch.last.
 */

bool watch_closing(void)
{
	return __atomic_load_n(&agent.watch.closing, __ATOMIC_SEQ_CST);
}

void watch_poll(void)
{
	agent.watch.polling = true;
}

static bool leaving(void)
{
	return __atomic_load_n(&agent.watch.leave, __ATOMIC_SEQ_CST);
}

static bool has_interpreter(void)
{
	int (*ending)(void) = agent.py.Py_IsFinalizing ? agent.py.Py_IsFinalizing : agent.py._Py_IsFinalizing;

	return agent.py.Py_IsInitialized() && !(ending && ending());
}

/* Some 70 us: the kernel lets it be late by 50. */
static void nap(void)
{
	const struct timespec wait = { .tv_nsec = 20000 };

	syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, &wait, NULL);	/* no cancellation point of the program's thread */
}

/* Set taking_gil when no thread is forking. */
static void announce(void)
{
	for (;;) {
		__atomic_store_n(&agent.watch.taking_gil, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&agent.watch.forking, __ATOMIC_SEQ_CST))
			return;
		__atomic_store_n(&agent.watch.taking_gil, 0, __ATOMIC_SEQ_CST);
		nap();
	}
}

/*
 * A thread that takes the GIL allocates its state before, from the raw domain.  Before 3.12.9 and 3.13.2 tracemalloc's
 * wrapper waits for the GIL there, and uses what tracemalloc.stop() releases meanwhile: the program dies (CPython's
 * issue 128679).  So the main thread, which has a state, is asked while that domain has a wrapper, and for ever after: a
 * program that starts tracemalloc again may do so between this look and the allocation.
 */
static bool allocation_is_wrapped(void)
{
	struct capi_allocator raw = { 0 };

	if (agent.py.PyMem_GetAllocator)
		agent.py.PyMem_GetAllocator(CAPI_DOMAIN_RAW, &raw);
	agent.watch.was_wrapped |= raw.ctx != NULL;
	return raw.ctx;
}

bool watch_asks(void)
{
	return __atomic_load_n(&agent.watch.asked, __ATOMIC_RELAXED);
}

static void answer(void)
{
	void (*fn)(void) = __atomic_exchange_n(&agent.watch.asked, NULL, __ATOMIC_SEQ_CST);
	struct pyobj *type, *value, *traceback;
	int saved = errno;

	if (fn) {
		agent.py.PyErr_Fetch(&type, &value, &traceback);
		fn();
		agent.py.PyErr_Restore(type, value, traceback);
		__atomic_store_n(&agent.watch.answered, true, __ATOMIC_SEQ_CST);
	}
	errno = saved;
}

static int pending_call(void *unused);

/* Have the main thread do so.  Its queue, which is the program's, too, gets one entry at most.  False: it is full. */
static bool queue_call(void)
{
	bool full = !__atomic_exchange_n(&agent.watch.queued, true, __ATOMIC_SEQ_CST) && agent.py.Py_AddPendingCall(pending_call, NULL);

	if (full)
		__atomic_store_n(&agent.watch.queued, false, __ATOMIC_SEQ_CST);
	else
		breaker_set(pending_call);
	return !full;
}

/* For how long the main thread may still stay for the set-up, in ms: for a second in all. */
static long long stay_left(void)
{
	bool sets_up = __atomic_load_n(&agent.watch.sets_up, __ATOMIC_SEQ_CST);

	return sets_up && agent.watch.stayed_ms < STAY_MS ? STAY_MS - agent.watch.stayed_ms : 0;
}

/*
 * Let the agent's thread have the GIL, which it waits for.  Without this, who runs Python keeps it for sys.getswitchinterval(),
 * 5 ms unless the program says otherwise.  On a busy machine that thread may come too late: then once more, soon.  And let it set
 * the agent up, which the interpreter's end must not overtake.
 */
static void let_go(void)
{
	long long begin = agent_now_ms(), stay = stay_left();
	void *thread;
	int naps = 0;

	if (!stay && !__atomic_load_n(&agent.watch.wants_gil, __ATOMIC_SEQ_CST))
		return;
	thread = agent.py.PyEval_SaveThread();
	while ((agent_now_ms() - begin < stay && __atomic_load_n(&agent.watch.sets_up, __ATOMIC_SEQ_CST)) ||
	       (naps < LET_GO_NAPS && __atomic_load_n(&agent.watch.wants_gil, __ATOMIC_SEQ_CST))) {
		nap();
		naps++;
	}
	agent.py.PyEval_RestoreThread(thread);
	agent.watch.stayed_ms += stay ? agent_now_ms() - begin : 0;
	if (stay_left() || __atomic_load_n(&agent.watch.wants_gil, __ATOMIC_SEQ_CST))
		queue_call();
}

/* answer() without a signal's handler amid it: first those run that wait.  False: one has raised what the program is to get. */
static bool answer_undisturbed(void)
{
	sigset_t old;
	bool raised;

	agent_block_signals(&old, false);
	raised = watch_asks() && agent.py.PyErr_CheckSignals();
	if (!raised)
		answer();
	sigprocmask(SIG_SETMASK, &old, NULL);
	return !raised;
}

/* A child of fork has none of its parent's threads. */
static void forget_thread(void)
{
	__atomic_store_n(&agent.watch.taking_gil, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.forking, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.thread, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.last, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.leave, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.asked, NULL, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.queued, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.wants_gil, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.sets_up, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.stay_asked, false, __ATOMIC_SEQ_CST);
	agent.watch.stayed_ms = 0;
}

/*
 * Before the words of agent.watch are relied on: if C code has forked, of which the interpreter tells nothing, they are about the
 * parent's thread, and are cleared, once.
 */
static void look_at_fork(void)
{
	int pid = (int)syscall(SYS_getpid), was = __atomic_load_n(&agent.watch.pid, __ATOMIC_SEQ_CST);

	if (was != pid && __atomic_compare_exchange_n(&agent.watch.pid, &was, pid, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) && was)
		forget_thread();
}

/* The main thread runs it between two bytecode instructions. */
static int pending_call(void *unused)
{
	int saved = errno;
	bool answered;

	(void)unused;
	look_at_fork();
	__atomic_store_n(&agent.watch.queued, false, __ATOMIC_SEQ_CST);
	answered = answer_undisturbed();
	if (answered)
		let_go();
	else
		queue_call();
	errno = saved;
	return answered ? 0 : -1;
}

void watch_answer(void)
{
	answer();
}

/* False: the main thread has not run Python for @ms. */
static bool ask_main_thread(void (*fn)(void), long ms)
{
	long long end = agent_now_ms() + ms;

	__atomic_store_n(&agent.watch.answered, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.asked, fn, __ATOMIC_SEQ_CST);
	if (queue_call())
		while (__atomic_load_n(&agent.watch.asked, __ATOMIC_SEQ_CST) && agent_now_ms() < end)
			nap();
	if (__atomic_exchange_n(&agent.watch.asked, NULL, __ATOMIC_SEQ_CST))
		return false;
	while (!__atomic_load_n(&agent.watch.answered, __ATOMIC_SEQ_CST))
		nap();
	return true;
}

static void ask_to_stay(void)
{
	for (int naps = 0; !queue_call() && naps < FULL_NAPS; naps++)
		nap();
	__atomic_store_n(&agent.watch.stay_asked, true, __ATOMIC_SEQ_CST);
}

/* No longer than for a second: it may have been stopped with the lock of the pending calls. */
void watch_hold_main_thread(void)
{
	if (syscall(SYS_gettid) != syscall(SYS_getpid))
		return;
	for (long long end = agent_now_ms() + STAY_MS; agent_now_ms() < end && agent.phase < AGENT_READY &&
	     !__atomic_load_n(&agent.watch.stay_asked, __ATOMIC_SEQ_CST);)
		nap();
}

static void run(void (*fn)(void))
{
	int state;

	__atomic_store_n(&agent.watch.wants_gil, true, __ATOMIC_SEQ_CST);
	if (!agent.py.free_threaded)
		queue_call();
	state = agent.py.PyGILState_Ensure();
	__atomic_store_n(&agent.watch.wants_gil, false, __ATOMIC_SEQ_CST);
	fn();
	agent.py.PyGILState_Release(state);
}

/*
 * While the allocation is wrapped and the main thread does not answer, @fn is run with the GIL all the same; if @patient,
 * it is not run, since the caller asks again.
 */
static void with_gil(void (*fn)(void), bool patient)
{
	announce();
	if (!watch_closing() && !leaving() && has_interpreter()) {
		long ms = allocation_is_wrapped() && !patient ? ANSWER_MS : PERIOD_MS;

		if (agent.watch.sets_up)
			ask_to_stay();
		if (!(agent.watch.was_wrapped && ask_main_thread(fn, ms)) && !(patient && allocation_is_wrapped()))
			run(fn);
	}
	__atomic_store_n(&agent.watch.taking_gil, 0, __ATOMIC_SEQ_CST);
}

/* Not at a safe point of the program: functions may be running, so what was noted of their calls is of no use. */
static void set_up_late(void)
{
	bool waiting = agent.phase == AGENT_WAITING;

	agent_set_up();
	if (waiting)
		early_forget();
}

static void set_up(void)
{
	__atomic_store_n(&agent.watch.sets_up, true, __ATOMIC_SEQ_CST);
	with_gil(set_up_late, false);
	__atomic_store_n(&agent.watch.sets_up, false, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.stay_asked, true, __ATOMIC_SEQ_CST);
}

/* Semaphores may have changed, or something missing may be available now. */
static void look(void)
{
	if (agent.phase == AGENT_READY && (agent_changed() || agent_listeners() != agent.supplied))
		with_gil(agent_update_hooks, false);
}

/* Not with the GIL each time. */
static void look_at_memory(void)
{
	bool displaced;

	announce();
	displaced = hook_memory_displaced();
	__atomic_store_n(&agent.watch.taking_gil, 0, __ATOMIC_SEQ_CST);
	if (displaced)
		with_gil(hook_memory_again, true);
}

static bool hooked_for_others(void)
{
	return __atomic_load_n(&agent.installed, __ATOMIC_RELAXED) && !control_has_channel();
}

static bool has_work(void)
{
	return agent.watch.polling || control_has_channel() || hooked_for_others();
}

/*
 * Clear agent.watch.thread, so that another thread can be started.  True: this thread must end.  False: there is work
 * for it after all, and no other thread has been started.
 */
static bool gone(int self)
{
	int none = 0, was = self;

	__atomic_compare_exchange_n(&agent.watch.thread, &was, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return leaving() || !has_work() ||
	       !__atomic_compare_exchange_n(&agent.watch.thread, &none, self, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static void *watch(void *unused)
{
	struct pollfd polled[CONTROL_POLLED];
	int self = (int)syscall(SYS_gettid), looks = 0;

	(void)unused;
	__atomic_store_n(&agent.watch.last, self, __ATOMIC_SEQ_CST);
	__atomic_store_n(&agent.watch.thread, self, __ATOMIC_SEQ_CST);
	while (!leaving() || !gone(self)) {
		int timeout_ms = -1, n = control_waits(polled);

		if (agent.phase < AGENT_READY)
			set_up();
		if (agent.phase >= AGENT_READY)
			control_greet();
		if (agent_changed())
			look();
		if (hook_memory_watched())
			look_at_memory();
		if (looks)
			timeout_ms = --looks < AFTER_END_LOOKS / 2 ? PERIOD_MS : AFTER_END_FIRST_MS;
		else if (agent.watch.polling || hooked_for_others() || hook_memory_watched())
			timeout_ms = PERIOD_MS;
		else if (!has_work() && gone(self))
			return NULL;
		else if (agent.phase < AGENT_READY)
			timeout_ms = AGAIN_MS;
		else if (!control_can_wake(polled))
			timeout_ms = PERIOD_MS;
		poll(polled, (unsigned)n, timeout_ms);
		if (control_serve(polled, n, look))
			looks = AFTER_END_LOOKS;
	}
	return NULL;
}

static int start_thread(void)
{
	sigset_t old;
	void *thread;
	int err;

	agent_block_signals(&old, true);
	err = agent.py.pthread_create(&thread, NULL, watch, NULL);
	if (!err)
		agent.py.pthread_detach(thread);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return -err;
}

bool watch_is_in_fork(void)
{
	return __atomic_load_n(&agent.watch.forking, __ATOMIC_SEQ_CST) && agent.watch.pid && agent.watch.pid != (int)syscall(SYS_getpid);
}

int watch_start(void)
{
	int none = 0, err;

	if (watch_closing())
		return -ESHUTDOWN;
	look_at_fork();
	if (leaving())
		return 0;		/* for a fork, after which the thread is started if there is work for it */
	err = control_make_waker();
	if (err)
		return err;
	if (!__atomic_compare_exchange_n(&agent.watch.thread, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
		control_wake();
		return 0;
	}
	err = start_thread();
	if (err)
		__atomic_store_n(&agent.watch.thread, 0, __ATOMIC_SEQ_CST);
	return err;
}

/*
 * Has the kernel removed the thread?  One that the interpreter's end has terminated has not cleared agent.watch.thread.
 */
static bool is_forgotten(void)
{
	int tid = __atomic_load_n(&agent.watch.last, __ATOMIC_SEQ_CST), ended = tid, known = tid;

	if (__atomic_load_n(&agent.watch.thread, __ATOMIC_SEQ_CST) == 1)
		return false;
	if (tid && !syscall(SYS_tgkill, (int)syscall(SYS_getpid), tid, 0))
		return false;
	__atomic_compare_exchange_n(&agent.watch.thread, &ended, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(&agent.watch.last, &known, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return true;
}

/*
 * Make the thread end and wait until the kernel has removed it (some 50 us); give up after a second, which takes so
 * long only on an overloaded machine, and sooner for a thread that has ended by itself, whose id may have been reused.
 * The caller holds the GIL, which the thread may be about to take.
 */
static void stop(void)
{
	int left = __atomic_load_n(&agent.watch.thread, __ATOMIC_SEQ_CST) ? 14000 : 200;
	void *thread;

	if (is_forgotten())
		return;
	__atomic_store_n(&agent.watch.leave, 1, __ATOMIC_SEQ_CST);
	control_wake();
	thread = agent.py.PyEval_SaveThread();
	while (left-- && !is_forgotten())
		nap();
	__atomic_store_n(&agent.watch.leave, 0, __ATOMIC_SEQ_CST);
	agent.py.PyEval_RestoreThread(thread);
}

/* Wait until taking_gil is clear.  The caller has the GIL and has prevented the thread from setting it again. */
static void wait_until_out(void)
{
	while (__atomic_load_n(&agent.watch.taking_gil, __ATOMIC_SEQ_CST)) {
		void *thread = agent.py.PyEval_SaveThread();

		nap();
		agent.py.PyEval_RestoreThread(thread);
	}
}

/* A pending call: the main thread runs it between two bytecode instructions. */
static int watch_again(void *unused)
{
	int saved = errno;

	(void)unused;
	if (has_work())
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
	look_at_fork();
	if (is_counted())
		stop();
	__atomic_fetch_add(&agent.watch.forking, 1, __ATOMIC_SEQ_CST);
	wait_until_out();
	errno = saved;
	return agent_none();
}

static struct pyobj *after_fork_parent(struct pyobj *self, struct pyobj *const *args, ssize_t nargs)
{
	(void)self;
	(void)args;
	(void)nargs;
	/* It is 0 if these functions were registered after this fork had called the functions before it. */
	if (__atomic_load_n(&agent.watch.forking, __ATOMIC_SEQ_CST))
		__atomic_fetch_sub(&agent.watch.forking, 1, __ATOMIC_SEQ_CST);
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
	int saved = errno;

	(void)self;
	(void)args;
	(void)nargs;
	look_at_fork();
	__atomic_store_n(&agent.watch.closing, 1, __ATOMIC_SEQ_CST);
	wait_until_out();
	errno = saved;
	return agent_none();
}

static bool call_at(const char *module_name, const char *function, const char *keyword, struct capi_method *def)
{
	const struct capi *py = &agent.py;
	struct pyobj *module = modules_get(module_name), *callable = agent_callable(def);
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
