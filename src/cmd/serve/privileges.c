#include "cmd/serve/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const unsigned char kept[] = {
#define PRIVILEGE(CAPABILITY, what) CAPABILITY,
#include "cmd/serve/privileges.def"
#undef PRIVILEGE
};

static uint64_t mask_of_kept(void)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		mask |= UINT64_C(1) << kept[i];
	return mask;
}

int privileges_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	uint64_t mask = mask_of_kept();

	/* Whoever may not change the bounding set has nothing to lose in it by a program that it executes. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!(mask >> cap & 1))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, data))
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(mask >> 32 * i);
		data[i].effective &= data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &header, data) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return 0;
}
