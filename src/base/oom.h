/*
 * Out of memory in functions that cannot return an error: arenas and growing strings.
 *
 * A half-built tree or a truncated text is useless, and a truncated path names another file.  So these functions do not
 * fail: a handler ends the process, and the kernel disarms the tracer's probes.  Traced processes continue; one that is
 * held ends with the tracer.  The commands' handler prints a message and exits; the default one prints it and aborts.
 */
#ifndef DTAP_BASE_OOM_H
#define DTAP_BASE_OOM_H

#include <errno.h>
#include <stdbool.h>

/* Set the handler, for the whole process.  It must not return and cannot allocate memory. */
void oom_set_handler(void (*handler)(void));

_Noreturn void oom(void);

/* Does the negative errno @err mean that the process or system is out of a resource, not that the request is wrong? */
static inline bool is_shortage(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE || err == -ENOBUFS;
}

/*
 * What cannot be looked at for a moment is often taken for what is not there, some functions above.  So who opens and reads
 * calls shortage_note(), which notes @err if it is a shortage, -EIO, or root's -EACCES, and returns it.  Who decides by what was
 * found calls shortage_take(), which returns the last note since the call before, or 0.  By any thread.
 */
int shortage_note(int err);
int shortage_take(void);

#endif
