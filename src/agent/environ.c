/* SPDX-License-Identifier: MIT */
/*
 * Hiding the agent in os.environ.  Its data is posix.environ, a dictionary of bytes that was filled when the
 * interpreter started; a change there does not affect C's environ.
 */
#include "agent/environ.h"

#include <stdlib.h>
#include <string.h>

#include "abi/agent.h"
#include "agent/agent.h"
#include "agent/modules.h"

static bool is_separator(char c)
{
	return c == ':' || c == ' ';
}

/* Is @element of LD_PRELOAD, @length bytes, the agent?  The dynamic linker keeps the name as written there. */
static bool is_self(const char *element, size_t length)
{
	const char *own = capi_own_name();

	return own && strlen(own) == length && !memcmp(own, element, length);
}

/* Copy @list without the agent to @rest, which may be @list, or is large enough for all of it; true if the agent was in it. */
static bool without_self(const char *list, char *rest)
{
	bool there = false;
	size_t n = 0;

	while (*list) {
		size_t length = 0;

		while (list[length] && !is_separator(list[length]))
			length++;
		if (!there && length && is_self(list, length)) {
			there = true;
			list += length;
			while (is_separator(*list))
				list++;
			continue;
		}
		length += !!list[length];
		memmove(rest + n, list, length);
		n += length;
		list += length;
	}
	while (there && n && is_separator(rest[n - 1]))
		n--;
	rest[n] = 0;
	return there;
}

/* The C library's. */
extern char **environ;

static char held_address[ABI_AGENT_ADDRESS];

static bool is_variable(const char *text, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(text, name, length) && text[length] == '=';
}

/* Take the first object out of "LD_PRELOAD=..."; false if there is no other. */
static bool take_first(char *text)
{
	char *list = text + sizeof("LD_PRELOAD"), *rest = list;

	while (*rest && !is_separator(*rest))
		rest++;
	if (!*rest)
		return false;
	memmove(list, rest + 1, strlen(rest + 1) + 1);
	return true;
}

/* Take the agent, or the blanks that are in its place, out of "LD_PRELOAD=..."; false if nothing is left. */
static bool take_self(char *text)
{
	char *list = text + sizeof("LD_PRELOAD"), *rest = list;

	without_self(list, list);
	while (is_separator(*rest))
		rest++;
	memmove(list, rest, strlen(rest) + 1);
	return *list;
}

void environ_take_lent(void)
{
	const char *own = capi_own_name();
	char **from, **to;

	if (!environ || !own || strncmp(own, ABI_AGENT_LENT, sizeof(ABI_AGENT_LENT) - 1))
		return;
	for (from = to = environ; *from; from++)
		if (!is_variable(*from, "LD_PRELOAD") || take_self(*from))
			*to++ = *from;
	*to = NULL;
}

void environ_take_held(void)
{
	char **from, **to;

	if (!environ)
		return;
	for (from = environ; *from && !is_variable(*from, ABI_AGENT_HELD); from++)
		;
	if (!*from)
		return;
	memcpy(held_address, *from + sizeof(ABI_AGENT_HELD), strnlen(*from + sizeof(ABI_AGENT_HELD), sizeof(held_address) - 1));
	for (from = to = environ; *from; from++)
		if (!is_variable(*from, ABI_AGENT_HELD) && (!is_variable(*from, "LD_PRELOAD") || take_first(*from)))
			*to++ = *from;
	*to = NULL;
}

const char *environ_address(void)
{
	return *held_address ? held_address : getenv(ABI_AGENT_ENV);
}

bool environ_is_held(void)
{
	return *held_address;
}

void environ_hide(void)
{
	static char rest[4096];
	const struct capi *py = &agent.py;
	const char *preload = getenv("LD_PRELOAD");
	struct pyobj *module, *own;

	if (!getenv(ABI_AGENT_ENV))
		return;
	module = modules_get("posix");
	own = module ? py->PyObject_GetAttrString(module, "environ") : NULL;
	if (own) {
		agent_release(py->PyObject_CallMethod(own, "pop", "yO", ABI_AGENT_ENV, py->none));
		if (preload && strlen(preload) < sizeof(rest) && without_self(preload, rest))
			agent_release(*rest ? py->PyObject_CallMethod(own, "__setitem__", "yy", "LD_PRELOAD",
								      rest)
					    : py->PyObject_CallMethod(own, "pop", "yO", "LD_PRELOAD",
								      py->none));
	}
	agent_release(own);
	agent_release(module);
}
