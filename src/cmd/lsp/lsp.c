#include "cmd/lsp/lsp.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "cmd/cmd.h"
#include "cmd/help.h"
#include "cmd/lsp/server.h"
#include "lib/lib.h"
#include "lib/stp_env.h"
#include "lib/topology.h"

enum { SECONDS = 30 };

/* --- libraries ---------------------------------------------------------------------------------------- */

/* The real path of a folder, for URIs; NULL stays NULL. */
static const char *real(struct arena *a, const char *dir)
{
	char path[PATH_MAX];

	return dir ? arena_strdup(a, realpath(dir, path) ? path : dir) : NULL;
}

bool lsp_init(struct lsp *s)
{
	struct dtap_conf conf = { .size = sizeof(conf), .language = DTAP_D };
	struct dtap *t = dtap_new(&conf);	/* it only says where things are */

	if (!t)
		return false;
	s->arena = arena_new();
	s->dlib = real(s->arena, lib_share(t, "dlib"));
	s->tapset = real(s->arena, lib_share(t, "tapset"));
	s->topology = arena_strdup(s->arena, lib_topology(t));
	s->seconds = SECONDS;
	dtap_free(t);
	return true;
}

void lsp_fini(struct lsp *s)
{
	for (size_t i = 0; i < sizeof(s->libraries) / sizeof(s->libraries[0]); i++)
		arena_free(s->libraries[i].index.arena);
	arena_free(s->arena);
}

const struct index *lsp_library(struct lsp *s, enum dtap_language language)
{
	struct lsp_library *l = &s->libraries[language];
	const char *own = language == DTAP_STAP ? s->tapset : s->dlib;
	struct stp_env env;

	if (l->index.arena && !l->is_stale)
		return &l->index;
	arena_free(l->index.arena);
	*l = (struct lsp_library){ .index.arena = arena_new() };
	stp_env_init(&env, l->index.arena);
	l->index.arch = env.arch;
	for (size_t i = 0; i < s->ndirs; i++)
		index_dir(&l->index, language, s->dirs[i]);
	if (own)
		index_dir(&l->index, language, own);
	return &l->index;
}

/* --- the command -------------------------------------------------------------------------------------- */

static const char help[] =
	"usage: dtap lsp [-gw] [-L DIR]...\n"
	"\n"
	"A language server for editors: D scripts (.d) and SystemTap scripts (.stp), on standard input and output.\n"
	"It shows mistakes while one types, completes names, and knows what they are and where they are defined.\n"
	"Nothing is traced, and no privilege is needed.\n"
	"\n"
	"  -L, --library DIR  libraries of one's own: D's as of dtrace -L, tapsets as of stap -I\n"
	"  -w, --destructive  scripts are run with dtrace -w\n"
	"  -g, --guru         scripts are run with stap -g\n"
	"  -h, --help         this text\n";

static int options(struct lsp *s, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "library", required_argument, NULL, 'L' }, { "destructive", no_argument, NULL, 'w' },
		{ "guru", no_argument, NULL, 'g' }, { "help", no_argument, NULL, 'h' },
		{ "stdio", no_argument, NULL, 's' },	/* some editors add it */
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "L:wgh", longs, NULL)) != -1) {
		switch (c) {
		case 'L':
			s->dirs = arena_grow(s->arena, s->dirs, &s->dirs_cap, s->ndirs, sizeof(*s->dirs));
			s->dirs[s->ndirs++] = real(s->arena, optarg);
			break;
		case 'w':
			s->destructive = true;
			break;
		case 'g':
			s->guru = true;
			break;
		case 's':
			break;
		default:
			return help_or_mistake(c, help);
		}
	}
	if (!help_has_words(argc, 0, help))
		return CMD_USAGE;
	return -1;
}

int cmd_lsp(int argc, char **argv)
{
	struct lsp s = { 0 };
	int code;

	if (!lsp_init(&s)) {
		fputs("dtap lsp: out of memory\n", stderr);
		return CMD_ERROR;
	}
	code = options(&s, argc, argv);
	if (code < 0) {
		signal(SIGPIPE, SIG_IGN);	/* a write tells that the client is gone */
		code = server_run(&s, STDIN_FILENO, STDOUT_FILENO) ? CMD_ERROR : CMD_OK;
	}
	lsp_fini(&s);
	return code;
}
