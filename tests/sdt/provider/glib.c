/* Two providers in one header, used by C and by C++. */
#include "glib_probes.h"

enum { PRIORITIES = 4 };

int main(void)
{
	int priority[PRIORITIES] = { 1, 2, 3, 4 };
	char block[16];

	GLIB_MEM_ALLOC(block, (unsigned int)sizeof(block), 0u, 0u);
	if (GLIB_MAIN_CONTEXT_PREPARE_ENABLED())
		GLIB_MAIN_CONTEXT_PREPARE(block, priority, 18446744073709551615ul);
	if (GOBJECT_OBJECT_NEW_ENABLED())
		GOBJECT_OBJECT_NEW(block, 80ul);
	return 0;
}
