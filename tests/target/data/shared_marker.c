/* A library whose marker has a semaphore and stands at the first statement of a line. */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

unsigned short lib_ping_semaphore __attribute__((section(".probes"), visibility("hidden")));

int ping(int n)
{
	STAP_PROBE1(lib, ping, n);
	return n + 1;
}
