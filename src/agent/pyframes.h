/* SPDX-License-Identifier: MIT */
/*
 * Python's frames of this thread, for stacks (vm/stack.h).
 *
 * The API gives a frame only by making an object for it, which an event must not do.  So they are read where the
 * interpreter has them, at offsets that probe/pyoffsets.h knows or the interpreter publishes; and these are used only
 * after a known stack has been walked by them and found to be what the API says that it is.
 */
#ifndef AGENT_PYFRAMES_H
#define AGENT_PYFRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct pyobj;
struct pythread;
struct abi_code;

enum { PYFRAMES_MAX = 127 };

/*
 * Learn where frames are, once; Python code is run.  With the GIL, no exception set, not at an event.  False: it cannot
 * be told for certain, and there are no frames.
 */
bool pyframes_measure(void);
bool pyframes_measured(void);	/* and it can */

/*
 * The innermost @most frames of this thread: two words each in @words, as struct abi_pyframe has them, and the code object
 * in @codes.  With @calls, the interpreter's own frames are among them, which are variables of the native functions that
 * run those before: the frame's address in place of the first word, and NULL in place of the code object; @calls is for
 * how many of all there is room.  Returns how many.  With the GIL.  @pid goes into the numbers of code objects.
 */
uint32_t pyframes_walk(uint32_t pid, uint32_t most, uint32_t calls, uint64_t *words, struct pyobj **codes);

/* All but the header of @code's record, in @most bytes: its size.  Leaves no exception.  With the GIL. */
uint32_t pyframes_tell(struct pyobj *code, uint64_t number, struct abi_code *rec, uint32_t most);

/*
 * A frame evaluator's frame is not yet or no more the thread's; until pyframes_unlink() it is.  What is between them must
 * not let go of the GIL.
 */
struct pyframes_link { void **top, *was; void **back, *was_back; };
void pyframes_link(struct pythread *thread, void *frame, struct pyframes_link *ret);
void pyframes_unlink(const struct pyframes_link *link);

#endif
