/*
 * guest MODE: a program that exports what a CPython exports, and sits at the point that MODE names.  The object may
 * be brought in, or must not.  It says "up" when it is there; what happens to it is on stdout, too.
 *
 *	regs	compares all its registers, its errno and the bytes below its stack pointer with what it has put there
 *	poll, epoll, nanosleep, usleep, read, futex
 *		waits, once: 2 s, those that an agent ends 100 s; then says what the call returned, and errno, and for how
 *		long it took in tenths of a second
 *	mask	blocked signals, an alternate stack and a handler; waits for SIGUSR1 and says what of these is left
 *	mutex	waits for a lock as malloc does: no safe point
 *	handler	executes in a signal handler: no safe point
 *	deep	the same, with much of the stack between
 *	left	does nothing, with the address at which handlers return left on its stack
 *	malloc	allocates and frees all the time
 *	stack	one thread waits for a lock, the other has no room on its stack: no safe point
 *	exec	cannot be stopped for 0.3 s (it waits for a child by vfork), and executes itself then, as "regs"
 *	vfork	its child by vfork, which has its memory, says "up", sleeps for 1 s and executes itself, as "malloc"
 *	threads	one thread cannot be stopped, as "exec"; the first is at no safe point, and executes itself after 0.2 s, as "regs"
 *	shares	a process that has its memory for ever (clone with CLONE_VM, without CLONE_THREAD) says "up"
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default"), used))

EXPORTED void Py_InitializeEx(void);
EXPORTED void Py_InitializeEx(void) { }
#ifndef OLD
EXPORTED void PySys_AddAuditHook(void);
EXPORTED void PySys_AddAuditHook(void) { }
#endif
#ifdef FREE_THREADED
EXPORTED void _Py_DecRefShared(void);
EXPORTED void _Py_DecRefShared(void) { }
EXPORTED void Py_HashBuffer(void);
EXPORTED void Py_HashBuffer(void) { }
#endif
#ifdef PYPY
EXPORTED void pypy_main_startup(void);
EXPORTED void pypy_main_startup(void) { }
#endif

static void up(void)
{
	puts("up");
	fflush(stdout);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#ifdef __x86_64__
struct regs { uint64_t gpr[16]; uint8_t ymm[16][32]; };

/*
 * turn(in, out, zone): fill all registers and the red zone, turn round for a while, and store what is there then: in
 * @zone the carry flag, which was set, and two words of the red zone.
 */
void turn(const struct regs *in, struct regs *out, uint64_t *zone);

#define EACH_YMM(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15)
#define LOAD(N) "vmovdqu 128+32*" #N "(%rdi), %ymm" #N "\n"
#define STORE(N) "vmovdqu %ymm" #N ", 128+32*" #N "(%rcx)\n"

__asm__(
	".text\n.globl turn\n.type turn, @function\nturn:\n"
	"push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
	"push %rsi; push %rdx\n"
	EACH_YMM(LOAD)
	"mov 0(%rdi), %rax; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx; mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
	"mov 64(%rdi), %r8; mov 72(%rdi), %r9; mov 80(%rdi), %r10; mov 88(%rdi), %r11; mov 96(%rdi), %r12\n"
	"mov 104(%rdi), %r13; mov 112(%rdi), %r14; mov 120(%rdi), %r15; mov 56(%rdi), %rdi\n"
	"movq $0x1111, -8(%rsp); movq $0x2222, -64(%rsp); movq $0x3333, -128(%rsp)\n"
	"mov $20000000, %ecx\n"
	"stc\n"
	"1: lea -1(%rcx), %rcx; jrcxz 2f; jmp 1b\n"
	"2: mov 8(%rsp), %rcx\n"
	EACH_YMM(STORE)
	"mov %rax, 0(%rcx); mov %rdx, 16(%rcx); mov %rbx, 24(%rcx); mov %rbp, 40(%rcx); mov %rsi, 48(%rcx)\n"
	"mov %rdi, 56(%rcx); mov %r8, 64(%rcx); mov %r9, 72(%rcx); mov %r10, 80(%rcx); mov %r11, 88(%rcx)\n"
	"mov %r12, 96(%rcx); mov %r13, 104(%rcx); mov %r14, 112(%rcx); mov %r15, 120(%rcx)\n"
	"mov 0(%rsp), %rdx\n"
	"setc %al; movzx %al, %eax; mov %rax, 0(%rdx)\n"
	"mov -64(%rsp), %rax; mov %rax, 8(%rdx); mov -128(%rsp), %rax; mov %rax, 16(%rdx)\n"
	"pop %rdx; pop %rsi; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
	"vzeroupper\n ret\n.size turn, .-turn\n");

static void regs(void)
{
	struct regs in, out;
	uint64_t zone[3];
	size_t i;

	for (i = 0; i < sizeof(in); i++)
		((uint8_t *)&in)[i] = (uint8_t)(i * 37 + 11);
	in.gpr[1] = in.gpr[4] = 0;	/* rcx counts, rsp is itself */
	up();
	for (;;) {
		errno = 4321;
		memset(&out, 0, sizeof(out));
		turn(&in, &out, zone);
		if (errno != 4321 || memcmp(&in, &out, sizeof(in)) || zone[0] != 1 || zone[1] != 0x2222 ||
		    zone[2] != 0x3333) {
			puts("spoilt");
			abort();
		}
	}
}
#else
static void regs(void) { }
#endif

static void waits(const char *mode)
{
	struct timespec t = { 2, 0 }, long_t = { 100, 0 };
	struct pollfd p = { .fd = -1 };
	struct epoll_event e;
	int word = 0, fds[2], ep = epoll_create1(0);
	double begin = now();
	long r = -1;
	char byte;

	if (pipe(fds))
		abort();
	errno = 0;
	up();
	if (!strcmp(mode, "poll"))
		r = poll(&p, 1, 100000);
	else if (!strcmp(mode, "epoll"))
		r = epoll_wait(ep, &e, 1, 100000);
	else if (!strcmp(mode, "nanosleep"))
		r = nanosleep(&long_t, &long_t);
	else if (!strcmp(mode, "usleep"))
		r = nanosleep(&t, NULL);
	else if (!strcmp(mode, "read"))
		r = read(0, &byte, 1);
	else if (!strcmp(mode, "futex")) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_sec += 2;
		r = syscall(SYS_futex, &word, 9 | 128, 0, &t, NULL, -1);	/* FUTEX_WAIT_BITSET, until a point of time */
	}
	printf("%ld %s %.0f\n", r, r < 0 ? strerror(errno) : "-", (now() - begin) * 10);
}

static void naps(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static volatile sig_atomic_t got;

static void on_signal(int sig)
{
	got = sig;
}

static void mask(void)
{
	stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 }, now_stack;
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t blocked;

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &act, NULL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	up();
	while (!got)
		naps(1000);	/* not pause(): the signal may come just before it */
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigaltstack(NULL, &now_stack);
	printf("usr1 %d usr2 %d int %d stack %d\n", sigismember(&blocked, SIGUSR1), sigismember(&blocked, SIGUSR2),
	       sigismember(&blocked, SIGINT), now_stack.ss_sp == stack.ss_sp && now_stack.ss_flags == 0);
}

static void in_handler(int sig)
{
	(void)sig;
	up();
	for (;;)
		;
}

static void left_over(void)
{
	uint64_t action[4 + 64] = { 0 };	/* struct kernel_sigaction: the handler, flags, restorer, mask */

	signal(SIGUSR1, on_signal);
	syscall(SYS_rt_sigaction, SIGUSR1, NULL, action, 8);
	__asm__ volatile ("" : : "r" (action) : "memory");
	up();
	for (;;)
		;
}

static void deep_in_handler(int sig)
{
	char much[12000];

	memset(much, 0, sizeof(much));
	__asm__ volatile ("" : : "r" (much) : "memory");
	in_handler(sig);
	__asm__ volatile ("" : : "r" (much) : "memory");	/* not a jump, which would leave the stack first */
}

static void __attribute__((noreturn)) hold_lock(void)
{
	int two = 2;

	up();
	for (;;)
		syscall(SYS_futex, &two, 128, 2, NULL, NULL, 0);
}

static void *on_thread(void *unused)
{
	for (;;)
		;
	return unused;
}

static void little_stack(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	pthread_create(&thread, &attr, on_thread, NULL);
	hold_lock();
}

static void allocates(void)
{
	void *p[64] = { 0 };
	unsigned int i;

	up();
	for (i = 0;; i++) {
		free(p[i % 64]);
		p[i % 64] = malloc(i * 7919 % 20000);
	}
}

static void executes(const char *mode)
{
	execl("/proc/self/exe", "guest", mode, (char *)NULL);
	abort();
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void by_vfork(long ms, const char *child, const char *parent)
{
	pid_t pid;

	if (!child)
		up();
	pid = vfork();
	if (!pid) {
		if (child && write(1, "up\n", 3) != 3)
			_exit(1);
		naps(ms);
		if (child)
			executes(child);
		_exit(0);
	}
	if (parent)
		executes(parent);
	for (;;)
		pause();
}
#pragma GCC diagnostic pop

static void *waits_for_child(void *unused)
{
	if (!syscall(SYS_clone, CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL)) {	/* with memory of its own */
		naps(1000);
		_exit(0);
	}
	return unused;
}

static void executes_beside(void)
{
	const struct timespec some = { .tv_nsec = 1000000 };
	double end = now() + 0.2;
	pthread_t thread;
	int two = 2;

	up();
	pthread_create(&thread, NULL, waits_for_child, NULL);
	while (now() < end)
		syscall(SYS_futex, &two, 128, 2, &some, NULL, 0);
	executes("regs");
}

static int sharer(void *unused)
{
	(void)unused;
	if (write(1, "up\n", 3) != 3)
		return 1;
	for (;;)
		naps(1000);
}

static void shares(void)
{
	static char stack[256 << 10] __attribute__((aligned(16)));

	if (clone(sharer, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL) < 0)
		abort();
	for (;;)
		naps(1000);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "regs")) {
		regs();
	} else if (!strcmp(mode, "mask")) {
		mask();
	} else if (!strcmp(mode, "mutex")) {
		hold_lock();
	} else if (!strcmp(mode, "handler")) {
		signal(SIGUSR1, in_handler);
		raise(SIGUSR1);
	} else if (!strcmp(mode, "deep")) {
		signal(SIGUSR1, deep_in_handler);
		raise(SIGUSR1);
	} else if (!strcmp(mode, "left")) {
		left_over();
	} else if (!strcmp(mode, "stack")) {
		little_stack();
	} else if (!strcmp(mode, "exec")) {
		by_vfork(300, NULL, "regs");
	} else if (!strcmp(mode, "vfork")) {
		by_vfork(1000, "malloc", NULL);
	} else if (!strcmp(mode, "threads")) {
		executes_beside();
	} else if (!strcmp(mode, "shares")) {
		shares();
	} else if (!strcmp(mode, "malloc")) {
		allocates();
	} else {
		waits(mode);
	}
	return 0;
}
