#include "cmd/stap_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "cmd/stap_opts.h"

enum { FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC };

/* The name of the @n-th file of -S, or of the only one. */
static const char *file_name(const struct stap_output *out, unsigned int n)
{
	return out->o->max_bytes ? arena_printf(out->arena, "%s.%u", out->file, n) : out->file;
}

/*
 * -b: the header before each piece of output in the file of a CPU.  SystemTap's runtime/linux/print.c, struct
 * _stp_trace; stap-merge(1) merges such files.
 */
struct bulk_head {
	char magic[4];
	uint32_t sequence, bytes;
};

static void take_bulk(struct stap_output *out)
{
	struct bulk_head head = { "\xf0\x9f\xa5\x9e", out->sequence, 0 };
	char buf[64 << 10];
	off_t at = 0;
	ssize_t n;

	for (; (n = pread(out->fd, buf, sizeof(buf), at)) > 0; at += n) {
		head.bytes = (uint32_t)n;
		head.sequence = out->sequence++;
		if (write(out->bulk_fd, &head, sizeof(head)) != sizeof(head) || write(out->bulk_fd, buf, (size_t)n) != n)
			out->lost = true;
	}
	if (at && (ftruncate(out->fd, 0) || lseek(out->fd, 0, SEEK_SET)))
		out->lost = true;
}

int stap_output_open(struct stap_output *out, struct arena *a, const struct stap_opts *o)
{
	char name[4096];
	time_t now = time(NULL);
	struct tm tm;

	*out = (struct stap_output){ .o = o, .arena = a, .fd = -1, .bulk_fd = -1 };
	if (!o->output) {
		out->fd = dup(STDOUT_FILENO);
	} else {
		localtime_r(&now, &tm);
		if (!strftime(name, sizeof(name), o->output, &tm))
			snprintf(name, sizeof(name), "%s", o->output);
		out->file = arena_strdup(a, name);
		if (o->bulk) {
			out->bulk_fd = open(arena_printf(a, "%s_0", name), FLAGS | O_TRUNC, 0666);
			out->fd = out->bulk_fd < 0 ? -1 : memfd_create("output", MFD_CLOEXEC);
		} else if (!truncate(file_name(out, 0), 0) || errno == ENOENT || errno == EINVAL)
			out->fd = open(file_name(out, 0), FLAGS, 0666);
	}
	if (out->fd >= 0)
		return 0;
	fprintf(stderr, "ERROR: Couldn't open output file %s: %s\n", o->output ? o->output : "standard output", strerror(errno));
	return -EIO;
}

void stap_output_written(struct stap_output *out)
{
	const struct stap_opts *o = out->o;
	int fd;

	if (out->bulk_fd >= 0)
		take_bulk(out);
	if (out->bulk_fd >= 0 || !o->max_bytes || lseek(out->fd, 0, SEEK_END) < (off_t)o->max_bytes)
		return;
	fd = open(file_name(out, out->files + 1), FLAGS | O_TRUNC, 0666);
	if (fd < 0)
		return;		/* continue with the current file */
	out->files++;
	dup3(fd, out->fd, O_CLOEXEC);
	close(fd);
	if (o->max_files && out->files >= o->max_files)
		unlink(file_name(out, out->files - o->max_files));
}

int stap_output_close(struct stap_output *out)
{
	int e;

	if (out->bulk_fd >= 0) {
		take_bulk(out);
		close(out->bulk_fd);
		out->bulk_fd = -1;
	}
	e = out->fd >= 0 && close(out->fd) ? -errno : out->lost ? -EIO : 0;
	if (e && out->file)
		fprintf(stderr, "ERROR: Couldn't write output file %s\n", out->o->output);
	out->fd = -1;
	return e;
}
