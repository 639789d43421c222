#include "base/oom.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static void end(void)
{
	static const char message[] = "dtap: out of memory\n";

	if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0)
		abort();
	abort();
}

/* At file scope because running out of memory concerns the process, not one compilation. */
static void (*handler)(void) = end;

void oom_set_handler(void (*set)(void))
{
	handler = set;
}

_Noreturn void oom(void)
{
	handler();
	abort();
}

static atomic_int noted;

int shortage_note(int err)
{
	if (is_shortage(err) || err == -EIO || (err == -EACCES && !geteuid()))
		atomic_store_explicit(&noted, err, memory_order_relaxed);
	return err;
}

int shortage_take(void)
{
	return atomic_exchange_explicit(&noted, 0, memory_order_relaxed);
}
