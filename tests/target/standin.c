/*
 * An agent that hooks nothing: it keeps the contract of abi/agent.h and answers every LOOK.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/agent.h"

static void say(int fd, enum abi_agent_kind kind, uint32_t seq)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = (uint16_t)kind, .seq = seq, .phase = ABI_AGENT_READY };

	m.pid = (uint32_t)getpid();
	send(fd, &m, sizeof(m), MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
	int fd = (int)(long)arg;
	struct abi_agent_msg m;

	say(fd, ABI_AGENT_HELLO, 0);
	while (recv(fd, &m, sizeof(m), 0) == sizeof(m))
		say(fd, ABI_AGENT_STATE, m.seq);
	close(fd);
	return NULL;
}

int agent_entry(int given);

int agent_entry(int given)
{
	pthread_attr_t attr;
	pthread_t thread;
	int fd, err;

	fd = fcntl(given, F_DUPFD_CLOEXEC, 500);	/* taken */
	if (fd < 0)
		return -1;
	close(given);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, serve, (void *)(long)fd);
	pthread_attr_destroy(&attr);
	return -err;
}
