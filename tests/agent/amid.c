/*
 * LD_PRELOAD for a program that the agent enters: the agent's entry point is called once more amid a call of it, in the same
 * thread, as by a tracer that comes while another one is at it.  Where is told in library calls, of those below: so each
 * order in which one entry lies in the other can be gone through.
 *
 * No C library is linked: there are old ones and musl's.
 */
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>

typedef int entry(int fd, unsigned int forbidden);

static __thread entry *fn __attribute__((tls_model("initial-exec")));
static __thread int arg __attribute__((tls_model("initial-exec"))), rest __attribute__((tls_model("initial-exec")));

/* From now on, behind @at calls of this thread's, @with(@fd).  amid_left(): how many were left; -1 when it has been called. */
void amid(entry *with, int fd, int at)
{
	arg = fd;
	rest = at;
	fn = with;
}

int amid_left(void)
{
	entry *with = fn;

	fn = 0;
	return with ? rest : -1;
}

static void step(void)
{
	entry *with = fn;

	if (!with || rest-- > 0)
		return;
	fn = 0;
	with(arg, 0);
}

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (ret < 0 && ret > -4096) {
		errno = (int)-ret;
		ret = -1;
	}
	return ret;
}

long syscall(long nr, ...)
{
	long a[6];
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (nr != SYS_clock_nanosleep && nr != SYS_clock_gettime)	/* how often it naps and looks at the clock differs */
		step();
	return call(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int socketpair(int domain, int type, int protocol, int pair[2])
{
	step();
	return (int)call(SYS_socketpair, domain, type, protocol, (long)pair, 0, 0);
}

int getsockopt(int fd, int level, int name, void *value, unsigned int *size)
{
	step();
	return (int)call(SYS_getsockopt, fd, level, name, (long)value, (long)size, 0);
}

int close(int fd)
{
	step();
	return (int)call(SYS_close, fd, 0, 0, 0, 0, 0);
}
