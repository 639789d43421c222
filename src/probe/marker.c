/*
 * Which of the agent's markers a probe is.  The order is that of agent/marker.h, which has the same names as C
 * has them.
 */
#include "probe/probe.h"

#include <string.h>

static const char *const markers[] = {
	"function-entry", "function-return", "line", "gc-start", "gc-done", "import-find-load-start",
	"import-find-load-done", "audit", "cfunction-entry", "cfunction-return", "exception-raise", "thread-start",
};

int probe_marker(const struct probe *p)
{
	if (p->agent_marker)
		return p->agent_marker - 1;
	if (p->kind != PROBE_SITES || strncmp(p->prov, "python", 6) || strcmp(p->mod, "dtap-agent.so"))
		return -1;
	for (size_t i = 0; i < sizeof(markers) / sizeof(*markers); i++) {
		if (!strcmp(p->name, markers[i]))
			return (int)i;
	}
	return -1;
}
