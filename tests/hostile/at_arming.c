/*
 * LD_PRELOAD for a tracer: run the command $AT_LOADING, to the end, when it is about to load its first program, which is after
 * all files have been read; and $AT_ARMING when it is about to arm its first site.  So what a test does to a file happens between
 * the reading of the file and the arming, each time.
 *
 * A site is armed by perf_event_open(2) with an event that has a path, or by bpf(2), BPF_LINK_CREATE, with one; the tracer asks
 * the kernel what it can do by the path "/".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <linux/perf_event.h>

enum { PROG_LOAD = 5, LINK_CREATE = 28, UPROBE_MULTI = 48 };

static void act(const char *variable)
{
	const char *command = getenv(variable);

	unsetenv("LD_PRELOAD");
	if (command && system(command))
		abort();
}

static void at_loading(void)
{
	act("AT_LOADING");
}

static void at_arming(void)
{
	act("AT_ARMING");
}

long syscall(long number, ...)
{
	static pthread_once_t loading = PTHREAD_ONCE_INIT, arming = PTHREAD_ONCE_INIT;
	static long (*next)(long, ...);
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!next)
		next = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_perf_event_open) {
		const struct perf_event_attr *attr = (const void *)a[0];

		if (attr->type > PERF_TYPE_BREAKPOINT && attr->config1)
			pthread_once(&arming, at_arming);
	} else if (number == SYS_bpf && a[0] == PROG_LOAD) {
		const struct { uint32_t words[12]; char name[16]; } *attr = (const void *)a[1];

		if (!strcmp(attr->name, "dtap"))	/* not one that only asks */
			pthread_once(&loading, at_loading);
	} else if (number == SYS_bpf && a[0] == LINK_CREATE) {
		const struct { uint32_t prog, target, type, flags; const char *path; } *attr = (const void *)a[1];

		if (attr->type == UPROBE_MULTI && strcmp(attr->path, "/"))
			pthread_once(&arming, at_arming);
	}
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
