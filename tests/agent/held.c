/*
 * For a Python that calls it with its lock: the agent's thread has asked the main thread to do something, and waits, when there is
 * a fork, of which the interpreter is not told.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* @call: the number of clock_nanosleep() and a blank; @path: the thread's file "syscall" (proc_pid_syscall(5)). */
pid_t fork_when_it_naps(const char *path, const char *call)
{
	for (;;) {
		char text[8] = "";
		int fd = open(path, O_RDONLY);

		if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
			return -1;
		close(fd);
		if (!strncmp(text, call, strlen(call)))
			return fork();
		usleep(1000);
	}
}
