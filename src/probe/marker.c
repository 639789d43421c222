/*
 * The agent's markers as probes: abi/marker.def by name.
 */
#include "probe/python.h"

#include <string.h>

#include "abi/marker.h"

static const struct {
	const char *name;
	enum abi_marker_arg types[ABI_MARKER_ARGS + 1];
} markers[] = {
#define TYPE(type, argument) ABI_ARG_##type
#define ABI_MARKER(name, n, ...) { #name, { ABI_ARGS(n, TYPE, __VA_ARGS__) } },
#include "abi/marker.def"
#undef ABI_MARKER
#undef TYPE
};

int marker_number(const char *raw)
{
	for (int i = 0; i < ABI_MARKERS; i++)
		if (!strcmp(raw, markers[i].name))
			return i;
	return -1;
}

const char *marker_type(int number, unsigned int arg)
{
	static const char *const names[] = {
		[ABI_ARG_TEXT] = "char *", [ABI_ARG_INT] = "int", [ABI_ARG_LONG] = "long", [ABI_ARG_OBJECT] = "void *",
	};

	return number < 0 || arg >= ABI_MARKER_ARGS ? NULL : names[markers[number].types[arg]];
}

unsigned int marker_args(int number)
{
	unsigned int n = 0;

	while (number >= 0 && markers[number].types[n])
		n++;
	return n;
}

void marker_dash(const char *raw, char *to)
{
	for (; *raw; raw++, to++) {
		*to = *raw;
		if (raw[0] == '_' && raw[1] == '_') {
			*to = '-';
			raw++;
		}
	}
	*to = '\0';
}

int probe_marker(const struct probe *p)
{
	char name[64];

	if (p->agent_marker)
		return p->agent_marker - 1;
	if (p->kind != PROBE_SITES || strncmp(p->prov, PYTHON_PROVIDER, strlen(PYTHON_PROVIDER)) || strcmp(p->mod, PYTHON_AGENT))
		return -1;
	for (int i = 0; i < ABI_MARKERS; i++) {
		marker_dash(markers[i].name, name);
		if (!strcmp(p->name, name))
			return i;
	}
	return -1;
}

int probe_marker_or_twin(const struct probe *p)
{
	return p->twin ? p->twin - 1 : probe_marker(p);
}

uint32_t probe_settling(const struct probe *p)
{
	enum { FILE_AND_NAME = 1 << 0 | 1 << 1 };
	int marker = probe_marker_or_twin(p);

	return marker == ABI_MARKER_function__entry || marker == ABI_MARKER_function__return ? FILE_AND_NAME : 0;
}
