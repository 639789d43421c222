#include "cmd/cmd.h"

#include <signal.h>
#include <stddef.h>

#include "session/session.h"

void cmd_block_signals(void)
{
	sigset_t set;

	session_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}
