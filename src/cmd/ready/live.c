#include "cmd/ready/live.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/now.h"
#include "cmd/cmd.h"
#include "cmd/ready/run.h"

static const struct key {
	char key;
	const char *sort;	/* the column to sort by */
} keys[] = { { 'c', "calls" }, { 's', "self" }, { 't', "total" }, { 'f', "function" } };

enum { KEYS = sizeof(keys) / sizeof(keys[0]), HEAD = 2, ESCAPE = 27, DELETE = 127 };

struct live {
	struct ready_run *r;
	struct ready_request limited;	/* the request, with rows limited to the terminal's height */
	const struct ready_request *asked;
	bool paused, quits;
	bool types;		/* keys are added to the filter's text, until Enter or Escape */
	char filter[64];
};

static void fit(struct live *l)
{
	struct winsize size = { .ws_col = 80, .ws_row = 24 };
	size_t room;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	l->r->width = size.ws_col;
	room = size.ws_row > HEAD + 2 ? size.ws_row - HEAD - 2u : 1;
	l->limited.rows = l->asked->rows && l->asked->rows < room ? l->asked->rows : room;
}

/* Print the two lines above the table; the rest of each line is cleared. */
static void put_head(const struct live *l)
{
	fprintf(l->r->out, "\033[H%s, %.3g s, by %s%s: c calls s self t total f function / filter p pause q quit\033[K\n",
		l->asked->head.name, (double)l->r->interval_ns / 1e9, l->r->sort, l->paused ? ", paused" : "");
	if (l->types || *l->filter)
		fprintf(l->r->out, "filter: %s%s", l->filter, l->types ? "_" : "");
	fputs("\033[K\n", l->r->out);
	fflush(l->r->out);
}

static int draw(struct live *l)
{
	const struct ready_form_ops *form = &ready_functions_ops;
	int e;

	fit(l);
	fputs("\033[H\033[2J", l->r->out);
	put_head(l);
	l->r->filter = l->filter;
	l->r->req = &l->limited;
	e = form->show(l->r, false);
	l->r->req = l->asked;
	fflush(l->r->out);
	return e ? CMD_ERROR : 0;
}

/* Handle a key in the filter's text: Enter ends it, Escape clears it.  An empty text is no filter. */
static void type_filter(struct live *l, char key)
{
	size_t n = strlen(l->filter);

	if (key == '\n' || key == '\r' || key == ESCAPE)
		l->types = false;
	if (key == ESCAPE)
		*l->filter = '\0';
	else if ((key == '\b' || key == DELETE) && n)
		l->filter[n - 1] = '\0';
	else if ((unsigned char)key >= ' ' && key != DELETE && n + 1 < sizeof(l->filter))
		memcpy(l->filter + n, (char[]){ key, '\0' }, 2);
}

static void take_keys(struct live *l)
{
	char pressed[64];
	ssize_t n = read(STDIN_FILENO, pressed, sizeof(pressed));

	l->quits = l->quits || !n;
	for (ssize_t i = 0; i < n; i++) {
		if (l->types) {
			type_filter(l, pressed[i]);
			continue;
		}
		l->types = pressed[i] == '/';
		l->quits = l->quits || pressed[i] == 'q';
		l->paused = l->paused != (pressed[i] == 'p');
		for (size_t k = 0; k < KEYS; k++)
			if (keys[k].key == pressed[i])
				l->r->sort = keys[k].sort;
	}
	put_head(l);
}

static int loop(struct live *l)
{
	uint64_t interval = l->r->interval_ns / 1000000, now = now_ms(), due = now + interval;
	uint64_t end = l->asked->duration_ns ? now + l->asked->duration_ns / 1000000 + 1 : 0;
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = dtap_fd(l->r->t), .events = POLLIN } };
	int e = 0;

	do {
		now = now_ms();
		if (l->quits || e || (end && now >= end))
			dtap_stop(l->r->t);
		else if (poll(fds, 2, due > now ? (int)(due - now) : 0) > 0 && fds[0].revents)
			take_keys(l);
		now = now_ms();
		if (now >= due && !l->paused)
			e = draw(l);
		if (now >= due)
			due = now + interval;
	} while (dtap_turn(l->r->t, 0) > 0);
	return e;
}

int ready_live(struct ready_run *r)
{
	struct live l = { .r = r, .limited = *r->req, .asked = r->req };
	struct termios before, raw;
	int e;

	if (tcgetattr(STDIN_FILENO, &before))
		return CMD_ERROR;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", r->out);	/* alternate screen, no cursor */
	e = loop(&l);
	fputs("\033[?25h\033[?1049l", r->out);
	fflush(r->out);
	tcsetattr(STDIN_FILENO, TCSANOW, &before);
	return e;
}
