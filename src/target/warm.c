/*
 * Paging in a held target's data.
 *
 * A probe in the kernel cannot wait for a page fault, so it cannot read data that the program has never touched, such
 * as the file name in its first open().  Before the program runs, each page of its private file mappings that are
 * readable and not executable is therefore read once.  Libraries are mapped later; theirs are not.
 */
#include <sys/uio.h>
#include <unistd.h>

#include "target/maps.h"
#include "target/priv.h"

enum { MAX_PAGES = 4096, AT_ONCE = 256 };

static void touch(pid_t pid, uint64_t from, size_t pages, uint64_t page)
{
	struct iovec there[AT_ONCE], here[1];
	char bytes[AT_ONCE];
	size_t n;

	for (; pages; pages -= n, from += n * page) {
		n = pages < AT_ONCE ? pages : AT_ONCE;
		for (size_t i = 0; i < n; i++)
			there[i] = (struct iovec){ (void *)(uintptr_t)(from + i * page), 1 };
		here[0] = (struct iovec){ bytes, n };
		/* How much was read does not matter. */
		(void)!process_vm_readv(pid, here, 1, there, n, 0);
	}
}

void target_warm(const struct target *t)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct target_maps maps;
	size_t left = MAX_PAGES;

	if (maps_read((uint32_t)t->pid, &maps))
		return;
	for (size_t i = 0; i < maps.n && left; i++) {
		const struct target_map *m = &maps.v[i];
		size_t pages = (size_t)((m->end - m->start) / page);

		if (!m->ino || !m->is_readable || m->is_exec || m->is_shared)
			continue;
		if (pages > left)
			pages = left;
		touch(t->pid, m->start, pages, page);
		left -= pages;
	}
	target_maps_fini(&maps);
}
