#include "base/child.h"

#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/file.h"

static bool is_nohup(void)
{
	struct sigaction old;

	return !sigaction(SIGHUP, NULL, &old) && old.sa_handler == SIG_IGN;
}

void child_signals(void)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	bool nohup = is_nohup();
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		if (i != SIGHUP || !nohup)
			sigaction(i, &dfl, NULL);	/* fails for SIGKILL and SIGSTOP, which is fine */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	file_descriptors_restore();
}

int child_spawn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, char *const *argv)
{
	posix_spawnattr_t attr;
	sigset_t none, all;
	int err = posix_spawnattr_init(&attr);

	if (err)
		return err;
	sigemptyset(&none);
	sigfillset(&all);
	if (is_nohup())
		sigdelset(&all, SIGHUP);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	file_descriptors_restore();
	err = posix_spawnp(pid, file, actions, &attr, argv, environ);
	file_descriptors_again();
	posix_spawnattr_destroy(&attr);
	return err;
}
