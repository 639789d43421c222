/* SPDX-License-Identifier: MIT */
/*
 * task-create: a task of asyncio is made (taskmade.c).
 *
 * task-step-begin and task-step-end: an event loop lets a task of asyncio go on until it waits or ends.
 *
 * A step runs the coroutine that the task was given, so it begins and ends where the frame of that coroutine does; it passes
 * through it even if another coroutine, which that one awaits, does the work.  The frame is compared with that of the running
 * task (task.h), which all event loops and kinds of tasks keep in the same way.  The events are those that functions by name
 * have (hook_function.c), in all functions that may be coroutines.
 */
#include "agent/agent.h"
#include "agent/engine.h"
#include "agent/hook_function.h"
#include "agent/object.h"
#include "agent/pyframes.h"
#include "agent/task.h"

enum { STEPS = WANT_task__step__begin | WANT_task__step__end };

static bool usable(void)
{
	return agent.py.minor >= 12 ? hook_monitoring.usable() : hook_eval.usable();
}

static unsigned update(unsigned wants)
{
	if (wants) {
		object_measure();
		task_want();
		if (!pyframes_measure() || !object_at->code_flags || !task_has_steps()) {
			agent_why("steps of tasks: where this CPython keeps tasks, or their frames, cannot be told");
			wants = 0;
		}
		if (wants & WANT_task__create && (!object_at->frame_locals || !task_has_makers())) {
			agent_why("task-create: where this CPython notes tasks that are made cannot be told");
			wants &= ~(unsigned)WANT_task__create;
		}
		if (agent.py.free_threaded && wants && !engine_stay_in_turn())
			wants = 0;
	}
	return hook_function_tasks(wants & STEPS, wants & WANT_task__create) ? wants : 0;
}

const struct hook hook_task = { STEPS | WANT_task__create, STEPS | WANT_task__create, usable, update };
