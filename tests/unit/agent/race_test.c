/*
 * What threads do to the agent's state at the same time in an interpreter without a GIL: events while sessions come and go and
 * other threads begin and end; code objects watched while the list of them is dropped.  Built with the thread sanitizer, which
 * says where an order of memory accesses is missing; programs are interpreted, so that it sees their accesses, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sanitizer/tsan_interface.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "../vm/segment.h"
#include "agent/agent.h"
#include "agent/engine.h"
#include "agent/watched.h"

enum { SLOTS = 6, LIVES = 12, EVENTS = 300, ROUNDS = 60, CODES = 24 };

struct vm_prog;
int __wrap_vm_compile(struct vm_prog *p);

int __wrap_vm_compile(struct vm_prog *p)
{
	(void)p;
	return -ENOSYS;
}

/*
 * When the kernel says that a thread is no longer there, what that has done has happened before, which the sanitizer does not
 * know.  Threads release this when they end.
 */
static char ends;

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);

long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long ret = __real_syscall(number, a, b, c, d, e, f);

	if (number == SYS_tkill && ret < 0)
		__tsan_acquire(&ends);
	return ret;
}

/* --- sessions ----------------------------------------------------------------------------------------- */

struct tracer {
	struct segment seg;
	int fds[2];
	struct abi_data *data;
};

/* Add 1 to the word that the lane has. */
static const struct bpf_insn counts[] = {
	{ .code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10 },
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4 },
	{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = SEG_LANE_ARRAY },
	{ .code = 0 },
	{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
	{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 3 },
	{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_0 },
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = 1 },
	{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static int file_of(const void *bytes, uint64_t size, int seals)
{
	int fd = memfd_create("race", MFD_ALLOW_SEALING);

	assert_true(fd >= 0 && !ftruncate(fd, (off_t)size));
	if (bytes)
		assert_int_equal(pwrite(fd, bytes, size, 0), size);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void tracer_make(struct tracer *t, uint64_t id)
{
	struct abi_image *h;
	struct abi_prog *prog;

	segment_make(&t->seg);
	h = segment_header(&t->seg);
	h->nprogs = h->nfires = 1;
	h->flags = ABI_SEGMENT_APART;
	h->id = id;
	h->number = 1;
	prog = (struct abi_prog *)(void *)segment_map(&t->seg, h->nmaps);
	*prog = (struct abi_prog){ .off = t->seg.image_size - sizeof(counts), .ninsns = sizeof(counts) / sizeof(*counts) };
	*(struct abi_fire *)(void *)(prog + 1) = (struct abi_fire){ .marker = ABI_MARKER_audit };
	memcpy(t->seg.image + prog->off, counts, sizeof(counts));
	t->fds[0] = file_of(t->seg.image, t->seg.image_size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	t->fds[1] = file_of(NULL, t->seg.data_size, F_SEAL_SHRINK | F_SEAL_GROW);
	t->data = mmap(NULL, t->seg.data_size, PROT_READ | PROT_WRITE, MAP_SHARED, t->fds[1], 0);
	assert_ptr_not_equal(t->data, MAP_FAILED);
}

static void tracer_comes(struct tracer *t, uint64_t channel)
{
	int fds[3] = { t->fds[0], t->fds[1], eventfd(0, EFD_CLOEXEC) };
	const char *why = NULL;
	int err = engine_receive(channel, fds, &(struct engine_who){ .pid = 1 }, &why);

	if (err)
		fail_msg("%s: %s", why ? why : "", strerror(-err));
	engine_update();
}

static void tracer_goes(uint64_t channel)
{
	engine_channel_ended(channel);
	engine_update();
}

/* The events that it has counted, in all lanes. */
static uint64_t tracer_sum(const struct tracer *t)
{
	const struct abi_image *h = (const struct abi_image *)t->seg.image;
	const uint8_t *data = (const uint8_t *)t->data;
	uint64_t sum = 0;

	for (unsigned int k = 0; k < h->nlanes; k++)
		sum += *(const uint64_t *)(data + h->lanes_off + k * h->lane_size +
					   ((const struct abi_map *)(h + 1))[SEG_LANE_ARRAY].off);
	return sum;
}

static void tracer_free(struct tracer *t)
{
	munmap(t->data, t->seg.data_size);
	segment_free(&t->seg);
	close(t->fds[0]);
	close(t->fds[1]);
}

/* --- threads with events ------------------------------------------------------------------------------ */

static uint32_t running;

static void *fires(void *arg)
{
	(void)arg;
	for (unsigned int k = 0; k < EVENTS; k++) {
		if (engine_wanted(audit))
			engine_run(ABI_MARKER_audit, 0, 0, 0, 0, 0);
		if (k % 64 == 0)
			sched_yield();
	}
	__tsan_release(&ends);
	return NULL;
}

/* One thread after the other, whose lanes are those of ended ones. */
static void *lives(void *arg)
{
	for (unsigned int k = 0; k < LIVES; k++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, fires, arg))
			abort();
		pthread_join(thread, NULL);
	}
	__atomic_fetch_sub(&running, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int set_up(void **state)
{
	(void)state;
	agent.py.free_threaded = true;
	agent.py.minor = 13;
	engine_expect_threads();
	return 0;
}

/* There are fewer lanes than threads: some run in turn. */
static void sessions_come_and_go(void **state)
{
	pthread_t threads[SLOTS];
	struct tracer stays, comes;
	unsigned int rounds = 0;

	(void)state;
	tracer_make(&stays, 1);
	tracer_comes(&stays, 1);
	running = SLOTS;
	for (unsigned int k = 0; k < SLOTS; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, lives, NULL), 0);
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE)) {
		tracer_make(&comes, 2 + rounds);
		tracer_comes(&comes, 2 + rounds);
		sched_yield();
		tracer_goes(2 + rounds);
		assert_true(tracer_sum(&comes) <= SLOTS * LIVES * EVENTS);
		tracer_free(&comes);
		rounds++;
	}
	for (unsigned int k = 0; k < SLOTS; k++)
		pthread_join(threads[k], NULL);
	assert_true(rounds > 1);
	tracer_goes(1);
	assert_int_equal(stays.data->no_lane, 0);
	assert_int_equal(tracer_sum(&stays), SLOTS * LIVES * EVENTS);
	tracer_free(&stays);
}

/* --- watched code ------------------------------------------------------------------------------------- */

/* An interpreter that keeps events by code, and its references. */
static int events[CODES], references[CODES];
static struct watched watched;
static bool stop;

static int *events_of(struct pyobj *code)
{
	return &events[(uintptr_t)code - 1];
}

static struct pyobj *number(long n)
{
	return (struct pyobj *)(uintptr_t)(1000 + n);
}

static struct pyobj *call_method(struct pyobj *monitoring, const char *name, const char *format, ...)
{
	bool sets = !strcmp(name, "set_local_events");
	struct pyobj *code;
	va_list list;
	int value;

	(void)monitoring;
	(void)format;
	va_start(list, format);
	(void)va_arg(list, int);
	code = va_arg(list, struct pyobj *);
	value = sets ? va_arg(list, int) : 0;
	va_end(list);
	if (!sets)
		return number(__atomic_load_n(events_of(code), __ATOMIC_RELAXED));
	sched_yield();
	__atomic_store_n(events_of(code), value, __ATOMIC_RELAXED);
	return number(0);
}

static long as_long(struct pyobj *value)
{
	return (long)(uintptr_t)value - 1000;
}

static struct pyobj *new_reference(struct pyobj *code, struct pyobj *callback)
{
	(void)callback;
	__atomic_fetch_add(&references[(uintptr_t)code - 1], 1, __ATOMIC_RELAXED);
	return (struct pyobj *)(uintptr_t)(100 + (uintptr_t)code);
}

static struct pyobj *referent(struct pyobj *reference, ...)
{
	return (struct pyobj *)(uintptr_t)((uintptr_t)reference - 100);
}

static void release(struct pyobj *o)
{
	uintptr_t n = (uintptr_t)o;

	if (n > 100 && n <= 100 + CODES)
		__atomic_fetch_sub(&references[n - 101], 1, __ATOMIC_RELAXED);
}

static void nothing(void)
{
}

static void *save_thread(void)
{
	return NULL;
}

static void restore_thread(void *thread)
{
	(void)thread;
}

static void *watches(void *arg)
{
	unsigned int k = (unsigned int)(uintptr_t)arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct pyobj *code = (struct pyobj *)(uintptr_t)(1 + k++ % CODES);

		if (!watched_has(NULL, 3, code))
			watched_add(&watched, NULL, 3, code, 1);
	}
	return NULL;
}

/* Once they have been dropped no code has events, whatever threads were about to do, until there may be some again. */
static void nothing_is_left(void **state)
{
	pthread_t threads[SLOTS];

	(void)state;
	agent.py.PyObject_CallMethod = call_method;
	agent.py.PyLong_AsLong = as_long;
	agent.py.PyWeakref_NewRef = new_reference;
	agent.py.PyObject_CallFunctionObjArgs = referent;
	agent.py.Py_DecRef = release;
	agent.py.PyErr_Clear = nothing;
	agent.py.PyEval_SaveThread = save_thread;
	agent.py.PyEval_RestoreThread = restore_thread;
	for (uintptr_t k = 0; k < SLOTS; k++)
		assert_int_equal(pthread_create(&threads[k], NULL, watches, (void *)k), 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		watched_open(&watched, -1, 0);
		for (unsigned int n = 0; n < 20; n++)
			sched_yield();
		watched_drop(&watched, NULL, 3);
		for (unsigned int n = 0; n < 5; n++) {
			for (unsigned int k = 0; k < CODES; k++)
				assert_int_equal(__atomic_load_n(&events[k], __ATOMIC_RELAXED), 0);
			sched_yield();
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned int k = 0; k < SLOTS; k++)
		pthread_join(threads[k], NULL);
	for (unsigned int k = 0; k < CODES; k++)
		assert_int_equal(references[k], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(sessions_come_and_go, set_up),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
