/* SPDX-License-Identifier: MIT */
#include "agent/early.h"

#include <string.h>

#include "agent/state.h"

static struct {
	struct capi_allocator from;	/* the entry's */
	struct capi_allocator now;	/* the one at the end */
	void *entry;			/* the last block that was allocated when the hook was added */
} early;

static void *noting_malloc(void *ctx, size_t size)
{
	early.entry = early.from.malloc(ctx, size);
	return early.entry;
}

bool early_add_hook(capi_audithook *hook)
{
	const struct capi *py = &agent.py;
	struct capi_allocator noting;
	bool added;

	if (!py->PyMem_GetAllocator || !py->PyMem_SetAllocator)
		return py->PySys_AddAuditHook(hook, NULL) == 0;
	py->PyMem_GetAllocator(CAPI_DOMAIN_RAW, &early.from);
	noting = early.from;
	noting.malloc = noting_malloc;
	py->PyMem_SetAllocator(CAPI_DOMAIN_RAW, &noting);
	added = py->PySys_AddAuditHook(hook, NULL) == 0;
	py->PyMem_SetAllocator(CAPI_DOMAIN_RAW, &early.from);
	if (!added)
		early.entry = NULL;
	return added;
}

/* Release the entry by its own allocator, and others as before; all but this function is as it was set. */
static void release(void *ctx, void *at)
{
	struct capi_allocator top;

	if (!at || at != early.entry) {
		early.now.free(ctx, at);
		return;
	}
	early.entry = NULL;
	early.from.free(early.from.ctx, at);
	agent.py.PyMem_GetAllocator(CAPI_DOMAIN_RAW, &top);
	if (top.free == release)
		agent.py.PyMem_SetAllocator(CAPI_DOMAIN_RAW, &early.now);
}

void early_event(const char *event)
{
	struct capi_allocator ours;

	if (!early.entry || early.now.free || strcmp(event, "cpython._PySys_ClearAuditHooks"))
		return;
	agent.py.PyMem_GetAllocator(CAPI_DOMAIN_RAW, &early.now);
	if (early.now.free == early.from.free && early.now.ctx == early.from.ctx)
		return;
	ours = early.now;
	ours.free = release;
	agent.py.PyMem_SetAllocator(CAPI_DOMAIN_RAW, &ours);
}
