/*
 * Becomes the program of its arguments from another thread than its first, while a third one runs; started by
 * "leave" it ends the first thread before.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *exec_it(void *arg)
{
	char **argv = arg;

	usleep(20000);
	execv(argv[0], argv);
	_exit(98);
}

int main(int argc, char **argv)
{
	int leave = argc > 1 && !strcmp(argv[1], "leave");
	pthread_t a, b;

	if (pthread_create(&a, NULL, idle, NULL) || pthread_create(&b, NULL, exec_it, argv + 1 + leave))
		return 97;
	if (leave)
		pthread_exit(NULL);
	pthread_join(b, NULL);
	return 96;
}
