/*
 * A library whose constructor leaves threads running, one of which starts others all the time.
 */
#include <pthread.h>
#include <unistd.h>

static void *idle(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void *starter(void *arg)
{
	pthread_t t;

	for (;;)
		if (!pthread_create(&t, NULL, nothing, NULL))
			pthread_join(t, NULL);
	return arg;
}

int ctor_lib(void);
int ctor_lib(void)
{
	return 0;
}

static void __attribute__((constructor)) constructed(void)
{
	pthread_t t;

	pthread_create(&t, NULL, idle, NULL);
	pthread_create(&t, NULL, starter, NULL);
}
