/*
 * Preloaded into bpftrace by bench/peer.py, to let the peer run at all.
 *
 * bpftrace 0.17 raises RLIMIT_MEMLOCK and gives up when it may not, as in a container without
 * CAP_SYS_RESOURCE ("couldn't set RLIMIT_MEMLOCK").  Since Linux 5.11 BPF memory is charged to the memory
 * cgroup and not to that limit, so the failure means nothing: pretend that it worked.
 */
#include <sys/resource.h>

int setrlimit(__rlimit_resource_t resource, const struct rlimit *rlim)
{
	(void)resource;
	(void)rlim;
	return 0;
}

int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *rlim)
{
	(void)resource;
	(void)rlim;
	return 0;
}
