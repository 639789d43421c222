/*
 * A lock like CPython's: its layout (src/bpf/rt/gil.c) and its calls, without the interpreter.  Threads take it, hold it and
 * give it back; what they have done is printed.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

const unsigned long Py_Version = 0x030b02f0;	/* by which dtap recognises CPython, and its version */

static struct {
	unsigned long interval;
	void *holder;
	int locked;
	unsigned long switches;
	pthread_cond_t cond;
	pthread_mutex_t mutex;
	pthread_cond_t switch_cond;
	pthread_mutex_t switch_mutex;
} lock = { 5000, NULL, 0, 0, PTHREAD_COND_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };

enum { THREADS = 3, TURNS = 100 };

static int waits, takes, drops;		/* under the mutex */

static void __attribute__((noinline)) take(void *self)
{
	int waiting = 0;

	pthread_mutex_lock(&lock.mutex);
	while (lock.locked) {
		struct timespec until;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		waits += !waiting++;
		pthread_cond_timedwait(&lock.cond, &lock.mutex, &until);
	}
	pthread_mutex_lock(&lock.switch_mutex);
	lock.locked = 1;
	lock.holder = self;
	lock.switches++;
	pthread_cond_signal(&lock.switch_cond);
	pthread_mutex_unlock(&lock.switch_mutex);
	takes++;
	pthread_mutex_unlock(&lock.mutex);
}

static void __attribute__((noinline)) drop(void)
{
	pthread_mutex_lock(&lock.mutex);
	lock.locked = 0;
	pthread_cond_signal(&lock.cond);
	drops++;
	pthread_mutex_unlock(&lock.mutex);
}

static void *run(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		take(arg);
		usleep(10);
		drop();
	}
	return NULL;
}

int main(void)
{
	static long selves[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, &selves[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("gil-drop %d\ngil-take %d\ngil-wait %d\n", drops, takes, waits);
	return 0;
}
