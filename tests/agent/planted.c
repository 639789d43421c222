/* A mistake in the agent with sanitizers, made where the environment asks for it: a test that it would be seen. */
#include <stdlib.h>

static void __attribute__((constructor)) planted(void)
{
	volatile char *bytes;

	if (!getenv("DTAP_PLANTED"))
		return;
	bytes = malloc(8);
	bytes[8] = 1;
}
