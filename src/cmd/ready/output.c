#include "cmd/ready/output.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/ends.h"
#include "cmd/cmd.h"

static const struct format {
	const char *suffix, *what;
	unsigned int forms;		/* a bit for each enum ready_form */
	enum ready_format format;
} formats[] = {
#define ALL ((1u << (READY_FORMS + 1)) - 1)
#define BIT(form) (1u << (form))
#define READY_FORMAT(NAME, suffix, forms, what) { suffix, what, forms, READY_AS_##NAME },
#include "cmd/ready/formats.def"
#undef READY_FORMAT
#undef ALL
#undef BIT
};

enum { FORMATS = sizeof(formats) / sizeof(formats[0]) };

/* A form of CPU time is for scripts that have it. */
static int check_cpu(const struct ready_run *r)
{
	const struct ready_head *h = &r->req->head;
	bool is_of_cpu = r->format == READY_AS_CPU_FOLDED || r->format == READY_AS_CPU_SVG;

	for (size_t i = 0; i < h->ncolumns && is_of_cpu; i++)
		is_of_cpu = h->columns[i].kind != READY_CPU && h->columns[i].kind != READY_BUSY;
	if (is_of_cpu)
		fprintf(stderr, "dtap %s: '%s' is of CPU time, which is not recorded; record --cpu and record --sample do\n", h->name,
			r->req->output);
	return is_of_cpu ? CMD_USAGE : 0;
}

int ready_output_choose(struct ready_run *r)
{
	const struct ready_request *q = r->req;
	const char *file = q->output ? strrchr(q->output, '/') : NULL;

	r->format = q->json ? READY_AS_JSON : READY_AS_TEXT;
	file = file ? file + 1 : q->output;
	if (!file || !strchr(file, '.') || q->json)
		return 0;
	for (size_t i = 0; i < FORMATS; i++) {
		if ((formats[i].forms & 1u << q->head.form) && ends_with(file, formats[i].suffix)) {
			r->format = formats[i].format;
			return check_cpu(r);
		}
	}
	fprintf(stderr, "dtap %s: the suffix of '%s' says nothing; it is", q->head.name, q->output);
	for (size_t i = 0; i < FORMATS; i++)
		if ((formats[i].forms & 1u << q->head.form) && (!i || strcmp(formats[i].suffix, formats[i - 1].suffix) ||
								!(formats[i - 1].forms & 1u << q->head.form)))
			fprintf(stderr, "%s %s (%s)", i ? "," : "", formats[i].suffix, formats[i].what);
	fputc('\n', stderr);
	return CMD_USAGE;
}

const char *ready_output_what(const char *file)
{
	for (size_t i = 0; i < FORMATS; i++)
		if (ends_with(file, formats[i].suffix))
			return formats[i].what;
	return NULL;
}

int ready_output_open(struct ready_run *r)
{
	static char buffer[1 << 16];	/* for stdout, which lasts as long; setvbuf(3) makes none of a given size */
	struct winsize size;

	r->out = stdout;
	if (r->req->output)
		r->out = fopen(r->req->output, "we");
	if (!r->out) {
		fprintf(stderr, "dtap %s: cannot write %s: %s\n", r->req->head.name, r->req->output, strerror(errno));
		return CMD_ERROR;
	}
	if (r->out == stdout && !isatty(STDOUT_FILENO))
		setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));	/* ready_line_end() writes it in time */
	if (!r->req->output && isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		r->width = size.ws_col;
	return 0;
}

int ready_output_close(struct ready_run *r)
{
	int e = 0;

	if (r->out && r->out != stdout && (ferror(r->out) | fclose(r->out)) != 0)
		e = CMD_ERROR;
	if (e)
		fprintf(stderr, "dtap %s: failed to write %s\n", r->req->head.name, r->req->output);
	return e;
}
