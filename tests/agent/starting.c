/*
 * LD_PRELOAD for a Python: before one of the calls that it makes of the C library while it starts, a tracer brings the agent,
 * and it comes again now and then until the agent lets it in.  So the first thread does what one that a tracer has stopped at
 * that call is made to do (src/target/chain.h).
 *
 * In the environment: STARTING_OBJECT, the path for the loader; STARTING_ENTRY, the entry point's offset in it; STARTING_FD, the
 * channel; STARTING_AT, the call's number, from 0.  No C library is linked: there are old ones and musl's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <wchar.h>

enum { NOW = 2, AGAIN = -11, PERIOD = 50, TEXTS = 64 };
#define NEXT ((void *)-1)

extern void *dlopen(const char *path, int flags);
extern void *dlsym(void *handle, const char *name);
extern int dup(int fd);
extern char *getenv(const char *name);

typedef int entry(int fd, unsigned int how);

static __thread int is_first __attribute__((tls_model("initial-exec"))), is_amid __attribute__((tls_model("initial-exec")));
static long calls, texts[TEXTS], ntexts, at;
static entry *enter;
static int answer = AGAIN, answers;

/* How many calls there were. */
long starting_calls(void)
{
	return calls;
}

/* The numbers of those that put a text together, at most @most; how many they are. */
long starting_texts(long *numbers, long most)
{
	long n = ntexts < most ? ntexts : most;

	for (long i = 0; i < n; i++)
		numbers[i] = texts[i];
	return n;
}

/* What the entry point has answered last, and how often it did; -1: the object could not be loaded. */
int starting_answer(int *times)
{
	*times = answers;
	return answer;
}

static long number(const char *name, long otherwise)
{
	const char *s = getenv(name);
	long n = 0;

	if (!s)
		return otherwise;
	while (*s >= '0' && *s <= '9')
		n = 10 * n + (*s++ - '0');
	return n;
}

__attribute__((constructor)) static void first(void)
{
	at = number("STARTING_AT", -1);
	is_first = 1;
}

static void come(void)
{
	char **object = enter ? NULL : dlopen(getenv("STARTING_OBJECT"), NOW);

	/* Both C libraries' handles begin with where the object is (struct link_map). */
	if (object)
		enter = (entry *)(*object + number("STARTING_ENTRY", 0));
	answer = enter ? enter(dup((int)number("STARTING_FD", -1)), 0) : -1;
	answers++;
}

static void step(int puts_text)
{
	if (!is_first || is_amid)
		return;
	is_amid = 1;
	if (puts_text && ntexts < TEXTS)
		texts[ntexts++] = calls;
	if (at >= 0 && answer == AGAIN && calls >= at && (calls - at) % PERIOD == 0)
		come();
	calls++;
	is_amid = 0;
}

int vsnprintf(char *to, size_t size, const char *format, va_list args)
{
	int (*next)(char *to, size_t size, const char *format, va_list args) = dlsym(NEXT, "vsnprintf");

	step(1);
	return next(to, size, format, args);
}

int __vsnprintf_chk(char *to, size_t size, int flag, size_t room, const char *format, va_list args)
{
	(void)flag;
	(void)room;
	return vsnprintf(to, size, format, args);
}

#define LENGTH(name, type)		\
	size_t name(const type *s)	\
	{				\
		size_t n = 0;		\
					\
		step(0);		\
		while (s[n])		\
			n++;		\
		return n;		\
	}

LENGTH(strlen, char)
LENGTH(wcslen, wchar_t)

int strcmp(const char *a, const char *b)
{
	step(0);
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a - (unsigned char)*b;
}
