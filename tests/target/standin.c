/*
 * An agent that hooks nothing: it keeps the contract of abi/agent.h and answers every LOOK.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/agent.h"

static void say(int fd, enum abi_agent_kind kind, uint32_t seq, uint64_t proof, const char *word)
{
	struct abi_agent_msg m = { .version = ABI_AGENT_VERSION, .kind = (uint16_t)kind, .seq = seq, .phase = ABI_AGENT_READY,
				   .proof = proof };

	m.pid = (uint32_t)getpid();
	memcpy(m.why, word, strlen(word));
	send(fd, &m, sizeof(m), MSG_NOSIGNAL);
}

static bool connected;		/* the channel is one that this process has made */

static void *serve(void *arg)
{
	int fd = (int)(long)arg;
	struct abi_agent_msg m;

	if (!connected)		/* else it is asked first */
		say(fd, ABI_AGENT_HELLO, 0, 0, "");
	while (recv(fd, &m, sizeof(m), 0) == sizeof(m)) {
		if (m.kind == ABI_AGENT_ASK)
			say(fd, ABI_AGENT_HELLO, 0, m.proof, "");
		else
			say(fd, ABI_AGENT_STATE, m.seq, 0, "");
	}
	close(fd);
	return NULL;
}

int agent_entry(int given);

__attribute__((constructor)) static void start(void)
{
	const char *address = getenv(ABI_AGENT_ENV), *colon = address ? strchr(address, ':') : NULL;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (!colon)
		return;
	memcpy(addr.sun_path + 1, address, (size_t)(colon - address));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(fd, (struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)(colon - address)))) {
		close(fd);
		return;
	}
	connected = true;
	say(fd, ABI_AGENT_PROOF, 0, 0, colon + 1);
	if (agent_entry(fd))
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
