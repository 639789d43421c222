#include "lib/stp_env.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"

/* The inode of the initial PID namespace is fixed (include/linux/proc_ns.h, PROC_PID_INIT_INO). */
enum { INITIAL_INO = 0xeffffffc };

/* CONFIG_HZ of Debian and most other distributions.  No system call returns it. */
enum { HZ = 250 };

void stp_env_init(struct stp_env *env, struct arena *a)
{
	struct utsname u;
	struct stat st;
	size_t n;

	memset(env, 0, sizeof(*env));
	if (uname(&u) < 0)
		memset(&u, 0, sizeof(u));
	n = strspn(u.release, "0123456789.");
	env->kernel_vr = arena_strdup(a, u.release);
	env->kernel_v = arena_strndup(a, u.release, n);
	env->arch = arena_strdup(a, !strcmp(u.machine, "aarch64") ? "arm64" : u.machine);
	env->systemtap_v = STP_VERSION;
	env->runtime = "kernel";
	env->privilege = "stapdev";
	env->pid = (uint32_t)getpid();
	env->uid = getuid();
	env->page_size = sysconf(_SC_PAGESIZE);
	env->hz = HZ;
	env->in_pid_ns = !stat("/proc/self/ns/pid", &st) && st.st_ino != INITIAL_INO;
}
