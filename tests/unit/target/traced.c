/*
 * The program that the tests hold and let go.  It notes in the file $TRACED_LOG what it gets to do:
 *	c	its own constructor ran (a program's are run from its entry point on)
 *	m	main ran
 *	u	SIGUSR1 was delivered
 * What main does is its first argument.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note(const char *what)
{
	const char *path = getenv("TRACED_LOG");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;

	if (fd >= 0 && write(fd, what, strlen(what)) < 0)
		_exit(99);
	close(fd);
}

static void __attribute__((constructor)) constructed(void)
{
	note("c");
}

static void on_signal(int sig)
{
	(void)sig;
	note("u");
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	note("m");
	if (!strcmp(what, "exit"))
		return atoi(argv[2]);
	if (!strcmp(what, "kill"))
		raise(atoi(argv[2]));
	if (!strcmp(what, "wait"))
		pause();
	if (!strcmp(what, "signals")) {	/* are they as a new program expects them? */
		struct sigaction sa;
		sigset_t mask;
		int i;

		sigprocmask(SIG_SETMASK, NULL, &mask);
		for (i = 1; i < 32; i++)
			if (sigismember(&mask, i) || sigaction(i, NULL, &sa) || sa.sa_handler != SIG_DFL)
				return i;
		return 0;
	}
	if (!strcmp(what, "usr1")) {
		signal(SIGUSR1, on_signal);
		raise(SIGUSR1);
	}
	return 0;
}
