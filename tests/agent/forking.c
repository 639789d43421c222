/*
 * LD_PRELOAD for a Python: a fork's child is stopped (SIGSTOP) before one of the calls that it makes of the C library until
 * fork_is_over() is called.  It stops in this object's code, where a tracer may load its agent.
 *
 * No C library is linked: there are old ones and musl's.
 */
#include <stddef.h>
#include <sys/syscall.h>

enum { STOP = 19 };
#define NEXT ((void *)-1)

extern void *dlsym(void *handle, const char *name);

static __thread int is_amid __attribute__((tls_model("initial-exec")));
static long at, calls;
static int is_child;

/* The children to come are stopped at call @number, from 0; -1: they are not. */
void stop_forks_at(long number)
{
	at = number;
}

/* How many calls there were; what follows is not one of the fork's. */
long fork_is_over(void)
{
	is_child = 0;
	return calls;
}

static long kernel(long nr, long a, long b)
{
#if defined(__x86_64__)
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return ret;
#else
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x1 __asm__("x1") = b;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
	return x0;
#endif
}

static void step(void)
{
	if (!is_child || is_amid)
		return;
	if (calls++ == at)
		kernel(SYS_kill, kernel(SYS_getpid, 0, 0), STOP);
}

static void *next(const char *name)
{
	void *found;

	is_amid++;
	found = dlsym(NEXT, name);
	is_amid--;
	return found;
}

int fork(void)
{
	int (*real)(void) = next("fork"), pid = real();

	if (!pid) {
		calls = 0;
		is_child = 1;
		step();
	}
	return pid;
}

/* What the interpreter calls there, with at most four words. */
#define CALL(name) \
	long name(long a, long b, long c, long d) \
	{ \
		static long (*real)(long a, long b, long c, long d); \
 \
		if (!real) \
			*(void **)&real = next(#name); \
		step(); \
		return real(a, b, c, d); \
	}

#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
CALL(free)
CALL(sem_init)
CALL(sem_destroy)
CALL(sem_post)
CALL(sem_wait)
CALL(sem_trywait)
CALL(pthread_key_create)
CALL(pthread_key_delete)
CALL(pthread_setspecific)
CALL(pthread_getspecific)
CALL(pthread_self)
CALL(pthread_mutex_init)
CALL(pthread_mutex_lock)
CALL(pthread_mutex_unlock)
CALL(getpid)
CALL(gettid)
