/* SPDX-License-Identifier: MIT */
/* What the files of task.h share. */
#ifndef AGENT_TASK_PRIV_H
#define AGENT_TASK_PRIV_H

#include "agent/agent.h"
#include "agent/attribute.h"
#include "agent/object.h"
#include "agent/reads.h"
#include "agent/task.h"

/*
 * Open an object that the interpreter keeps alive.  Without a GIL even what a task refers to may be exchanged for something
 * else: then it is no object.
 */
static inline void task_open(struct shm_run *r, uint64_t addr, struct object *o)
{
	if (agent.py.free_threaded) {
		reads_loose();
		if (object_open(r, addr, o))
			*o = (struct object){ .run = r };
		return;
	}
	object_lives(addr);
	object_open_alive(r, addr, o);
}

static inline bool task_is_coroutine(const struct object *o)	/* or a generator, which a task may run up to 3.11 */
{
	return o->type == agent.tasks.coro_type || o->type == agent.tasks.gen_type;
}

/* The running task; 0: none.  @r: object_reader_of_living().  0 or enum abi_fault. */
int task_current(struct shm_run *r, uint64_t *ret);

/* The variable @name of the module asyncio.tasks; 0: it has none, or is not loaded.  0 or enum abi_fault. */
int task_global(struct shm_run *r, const char *name, uint64_t *ret);

/* The coroutine of @task, which is implemented in C or not; 0: not one of CPython's.  0 or enum abi_fault. */
int task_coroutine(const struct object *task, bool of_c, uint64_t *ret);

#endif
