/*
 * The text of /proc/PID/maps: what is accepted has sane ranges and readable paths.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "target/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target_maps m;
	size_t i, total = 0;

	if (maps_parse((const char *)data, size, &m))
		return 0;
	for (i = 0; i < m.n; i++) {
		assert(m.v[i].start <= m.v[i].end);
		total += strlen(m.v[i].path);
	}
	assert(total <= size);
	target_maps_fini(&m);
	return 0;
}
