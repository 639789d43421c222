/* SPDX-License-Identifier: MIT */
/*
 * The kernel's list of mappings, a line each: "START-END ... PATH".  Nothing is allocated; called once, at the start.
 */
#include "agent/copies.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define NAME "/dtap-agent"

/* The linker's: where this object begins and ends. */
extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));

static uintptr_t hexadecimal(const char *s)
{
	uintptr_t v = 0;

	for (; (*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'f'); s++)
		v = v << 4 | (uintptr_t)(*s <= '9' ? *s - '0' : *s - 'a' + 10);
	return v;
}

static bool names_other(const char *line)
{
	uintptr_t at = hexadecimal(line);
	const char *name = strrchr(line, '/');

	return name && !strncmp(name, NAME, sizeof(NAME) - 1) && (at < (uintptr_t)__ehdr_start || at >= (uintptr_t)_end);
}

bool copies_other(void)
{
	char room[4096], *line, *end;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found = false;
	size_t kept = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	/* A line that is longer than the room is looked at in pieces, of which none begins with an address of ours. */
	while (!found && (n = read(fd, room + kept, sizeof(room) - 1 - kept)) > 0) {
		room[kept + (size_t)n] = '\0';
		for (line = room; !found && (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			found = names_other(line);
		}
		kept = strlen(line);
		if (kept == sizeof(room) - 1)
			kept = 0;
		memmove(room, line, kept);
	}
	close(fd);
	return found;
}
