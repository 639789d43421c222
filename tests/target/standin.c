/*
 * An agent that hooks nothing: it keeps the contract of abi/agent.h and answers every LOOK.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
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

__attribute__((constructor)) static void start(void)
{
	const char *name = getenv(ABI_AGENT_ENV);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (!name)
		return;
	memcpy(addr.sun_path + 1, name, strlen(name));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) || agent_entry(fd))
		close(fd);
}

int agent_entry(int given)
{
	pthread_attr_t attr;
	pthread_t thread;
	int fd, err;

	fd = dup(given);	/* taken */
	if (fd < 0)
		return -1;
	close(given);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, serve, (void *)(long)fd);
	pthread_attr_destroy(&attr);
	return -err;
}
