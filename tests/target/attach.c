/*
 * attach OBJECT PID [TIMES]	bring the agent into a process and take it out again, saying what happens; with
 *				0 times it stays until standard input ends
 * attach OBJECT -c COMMAND	have COMMAND bring it along: a Python, perhaps by an exec or two
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "target/agent.h"
#include "target/target.h"

#define WAIT_MS 60000	/* for a process's answer, also on a machine with much to do */

static bool is_quiet;

static void hear(void *ctx, const struct agents_event *e)
{
	static const char *const names[] = { "ready", "off", "late", "another", "state", "lost", "refused", "gone" };

	(void)ctx;
	if (!is_quiet)
		printf("%s %d %s\n", names[e->what], (int)e->pid, e->why);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int once(const char *object, pid_t pid, bool stay)
{
	struct strbuf why = { 0 };
	struct agents *a = NULL;
	struct target *t = NULL;
	double begin = now();
	int err;

	err = target_attach(pid, &t, &why);
	if (!err)
		err = agents_new(&a, object, hear, NULL, &why);
	if (!err)
		err = agents_attach(a, t, &why);
	if (!err && !is_quiet)
		printf("attached %d after %.1f ms\n", (int)pid, (now() - begin) * 1e3);
	if (!err)
		err = agents_wait(a, &pid, 1, WAIT_MS);
	if (!err && agents_said(a, pid, &why) != AGENTS_SAID_READY)
		err = -1;
	if (!err)
		err = agents_look(a, WAIT_MS);
	if (!err && stay) {
		struct pollfd p[2] = { { agents_fd(a), POLLIN, 0 }, { 0, POLLIN, 0 } };

		puts("staying");
		fflush(stdout);
		while (poll(p, 2, -1) > 0 && !p[1].revents)
			agents_turn(a);
	}
	if (err)
		printf("error %d: %s\n", err, strbuf_str(&why));
	fflush(stdout);
	agents_free(a);
	target_free(t);
	strbuf_fini(&why);
	return err;
}

/* Is it the interpreter that the command runs in the end? */
static bool is_python(struct target *t)
{
	struct target_image image;
	bool ret;

	if (target_image(t, &image, NULL))
		return false;
	ret = strstr(image.path, "python");
	target_image_fini(&image);
	return ret;
}

static int launch(const char *object, const char *command)
{
	struct strbuf why = { 0 };
	struct agents *a = NULL;
	struct target *t = NULL;
	int err = agents_new(&a, object, hear, NULL, &why), status = 0;

	if (!err)
		err = target_create(command, agents_preload(a), &t, &why);
	while (!err && target_state(t) != TARGET_EXITED && !is_python(t))
		err = target_next_exec(t, &why);
	if (!err)
		err = target_to_entry(t, &why);
	if (!err)
		err = agents_attach(a, t, &why);
	if (!err)
		err = target_release(t, &why);
	if (err)
		printf("error %d: %s\n", err, strbuf_str(&why));
	while (!err && target_poll(t) != TARGET_EXITED) {
		struct pollfd p = { agents_fd(a), POLLIN, 0 };

		poll(&p, 1, 10);
		agents_turn(a);
	}
	agents_turn(a);
	if (!err && target_exit_status(t, &status))
		printf("status %x\n", (unsigned int)status);
	target_free(t);
	agents_free(a);
	strbuf_fini(&why);
	return err;
}

int main(int argc, char **argv)
{
	int times = argc > 3 ? atoi(argv[3]) : 1, i, err = 0;

	if (argc < 3)
		return 2;
	setlinebuf(stdout);
	if (argc == 4 && !strcmp(argv[2], "-c"))
		return launch(argv[1], argv[3]) != 0;
	is_quiet = times > 1;
	for (i = 0; i < times && !err; i++)
		err = once(argv[1], (pid_t)atoi(argv[2]), argc > 3 && times == 0);
	if (argc > 3 && times == 0)
		err = once(argv[1], (pid_t)atoi(argv[2]), true);
	if (is_quiet)
		printf("%d of %d\n", i, times);
	return err != 0;
}
