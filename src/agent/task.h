/* SPDX-License-Identifier: MIT */
/*
 * asyncio: the task that this thread's event loop runs at an event, read from the data of the interpreter and of
 * _asyncio.
 *
 * No task factory is installed and no function of asyncio is replaced.  Tasks implemented in C and in Python, eager
 * tasks, and other event loops (uvloop) all store the running task in the same place, which is measured when _asyncio
 * is loaded.
 */
#ifndef AGENT_TASK_H
#define AGENT_TASK_H

#include <stdbool.h>
#include <stdint.h>

struct pyobj;
struct shm_run;

/*
 * Some program wants tasks.  If _asyncio is loaded, measure its data; else task_loaded() will.  With the GIL, in the
 * main interpreter, no exception set, not at an event.
 */
void task_want(void);

/* At an audit event, some of which follow the import of asyncio: measure it, if task_want() could not. */
void task_loaded(void);

/*
 * Write the name of the running task, or (@coroutine) the qualified name of its coroutine, with the NUL to @size bytes
 * at @dst; "" if none is running.  The number of bytes, or minus enum abi_fault.  With the GIL.
 */
int64_t task_text(struct shm_run *r, bool coroutine, char *dst, uint32_t size);

/* The same of the task at @task. */
int64_t task_text_of(struct shm_run *r, uint64_t task, bool coroutine, char *dst, uint32_t size);

/*
 * The running task, if @frame is that of its coroutine, not of one that the coroutine awaits; else 0.  So where such a frame
 * begins or goes on, and where it ends or waits, a step of the task does.  With the GIL.
 */
uint64_t task_of_frame(struct shm_run *r, const char *frame);

/* False: asyncio is loaded, and task_of_frame() cannot tell. */
bool task_has_steps(void);

/*
 * taskmade.c: a task is made where a function that task_is_maker() has been entered and task_made() is not 0; and where the
 * first step of a task, in @frame of its coroutine, is that of task_is_eager().  With the GIL.  task_has_makers() is false
 * if asyncio is loaded and that cannot be told.
 */
bool task_is_maker(struct pyobj *code);
uint64_t task_made(struct shm_run *r, struct pyobj *code);
bool task_is_eager(struct shm_run *r, uint64_t task, const char *frame);
bool task_has_makers(void);

#endif
