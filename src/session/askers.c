#include "session/askers.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/strbuf.h"
#include "probe/procs.h"

/* A start takes some 10 ms; on a busy machine, some more. */
enum { START_MS = 150 };

/* The interpreter of process @pid.  False: it cannot be told. */
static bool interpreter(uint32_t pid, uint64_t id[3])
{
	struct strbuf line = { 0 };
	char exe[32];
	struct stat st;
	bool ret;

	snprintf(exe, sizeof(exe), "/proc/%u/exe", pid);
	ret = !stat(exe, &st) && !proc_read((pid_t)pid, "cmdline", &line);
	if (ret) {
		id[0] = st.st_dev;
		id[1] = st.st_ino;
		id[2] = 14695981039346656037u;	/* FNV-1a */
		for (const char *s = strbuf_str(&line); *s; s++)
			id[2] = (id[2] ^ (unsigned char)*s) * 1099511628211u;
	}
	strbuf_fini(&line);
	return ret;
}

static bool knows(const struct askers *a, const uint64_t id[3])
{
	for (size_t i = 0; i < ASKERS && i < a->n; i++)
		if (a->v[i].dev == id[0] && a->v[i].ino == id[1] && a->v[i].name == id[2])
			return true;
	return false;
}

void askers_add(struct askers *a, uint32_t pid)
{
	uint64_t id[3];

	if (!interpreter(pid, id) || knows(a, id))
		return;
	a->v[a->n % ASKERS].dev = id[0];
	a->v[a->n % ASKERS].ino = id[1];
	a->v[a->n++ % ASKERS].name = id[2];
}

bool askers_will(const struct askers *a, uint32_t pid)
{
	uint64_t id[3];

	return a->n && procs_age_ms(pid) < START_MS && interpreter(pid, id) && knows(a, id);
}
