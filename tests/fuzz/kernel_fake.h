/*
 * A kernel that is played, for the driver of channels: some processes and what /proc says of them, their connections to the
 * tracer's socket, pidfds, a clock.  The linker has the calls of src/target come here (--wrap, meson.build); outside of
 * kernel_begin() and kernel_end() they go to the real one.  No system call is made, so inputs take microseconds.
 *
 * It knows what the tracer must not do, and aborts then: close a descriptor twice, leave one open, wait for what never
 * comes, send a segment to whom has not proved himself.
 */
#ifndef TEST_KERNEL_FAKE_H
#define TEST_KERNEL_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { KERNEL_PROCESSES = 12, KERNEL_CONNECTIONS = 96 };

/* How the tracer's machine is: bits. */
enum {
	KERNEL_USER = 1,	/* the tracer is no root */
	KERNEL_OLD = 2,		/* no SO_PEERPIDFD */
	KERNEL_TEXTS = 4,	/* the files of /proc are read, which takes three times as long: src/target/peer.c is played, too */
};

/* Everything as new; @word is that of the tracer's address.  kernel_end() aborts where descriptors are left open. */
void kernel_begin(unsigned int how, const char *word);
void kernel_end(void);

/* A process connects, and says the word; the number of the connection, or -1: there are no more, or it has ended. */
int kernel_connect(unsigned int process, bool word);

/* A connection that the tracer made for a process: its own end's descriptor. */
int kernel_introduce(unsigned int process, int *fd);
void kernel_hang_up(int c);
void kernel_hang_up_all(void);

/* Nobody is connected, or waits for it. */
bool kernel_is_quiet(void);

/* Which process @c is of; it was the one that connected. */
unsigned int kernel_owner(int c);

/* @process sends a packet, with @nfds descriptors. */
void kernel_send(int c, unsigned int process, const void *bytes, size_t size, unsigned int nfds);

/* What the tracer sent last: the number of its ASK, and of its LOOK; 0: none. */
uint64_t kernel_asked(int c);
uint32_t kernel_looked(int c);

/* What happens to a process. */
enum kernel_fate {
	KERNEL_EXITS,		/* it is on its way out */
	KERNEL_DIES,
	KERNEL_SETUID,
	KERNEL_SETGID,
	KERNEL_CAPS,
	KERNEL_LABEL,
	KERNEL_MOVES,		/* to another namespace */
	KERNEL_HIDES,		/* its namespaces cannot be read */
	KERNEL_STRANGE,		/* its status is not as it should be */
	KERNEL_REPLACED,	/* it has ended, and another one has its number */
	KERNEL_OUTSIDE,		/* it is in no pid namespace of the tracer's: its number is 0 */
	KERNEL_FATES
};

void kernel_happens(unsigned int process, enum kernel_fate fate);
pid_t kernel_pid(unsigned int process);

/* What happens to the tracer. */
void kernel_pass(uint64_t ms);
void kernel_signal(bool pending);
void kernel_full(bool full);		/* no room for more descriptors */
void kernel_unwatched(bool fails);	/* nor in epoll */
void kernel_deaf(int c, bool deaf);	/* the other end reads nothing: nothing more can be sent */

#endif
