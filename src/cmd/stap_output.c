#include "cmd/stap_output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "cmd/stap_opts.h"

enum { FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC };

enum { NAME_ROOM = 4096, NUMBER_ROOM = 12 };

/*
 * The name of the @n-th file: FILE.0, FILE.1 ... with -S; FILE, FILE.1 ... where only switch_file() begins others.
 * Safe in a signal handler.
 */
static void file_name(const struct stap_output *out, unsigned int n, char name[NAME_ROOM + NUMBER_ROOM])
{
	char digits[NUMBER_ROOM] = "";
	size_t at = sizeof(digits) - 1, len = strlen(out->file);

	if (n || out->o->max_bytes) {
		do
			digits[--at] = (char)('0' + n % 10);
		while (n /= 10);
		digits[--at] = '.';
	}
	memcpy(name, out->file, len);
	strcpy(name + len, digits + at);
}

/* Go on in the next file; where it cannot be opened, in the current one.  Safe in a signal handler. */
static void next_file(struct stap_output *out)
{
	const struct stap_opts *o = out->o;
	char name[NAME_ROOM + NUMBER_ROOM];
	int fd;

	file_name(out, out->files + 1, name);
	fd = open(name, FLAGS | O_TRUNC, 0666);
	if (fd < 0)
		return;
	out->files++;
	dup3(fd, out->fd, O_CLOEXEC);
	close(fd);
	if (o->max_files && out->files >= o->max_files) {
		file_name(out, out->files - o->max_files, name);
		unlink(name);
	}
}

/*
 * switch_file() sends SIGUSR2 from system(), during which the tracer waits with all written that was printed before:
 * what follows belongs to the next file.  A handler has no other way to the output than this.
 */
static struct stap_output *switched;

static void switch_file(int sig)
{
	int kept = errno;

	(void)sig;
	if (switched && switched->fd >= 0 && switched->bulk_fd < 0 && switched->file)
		next_file(switched);
	errno = kept;
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
	char name[NAME_ROOM];
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
		} else {
			char first[NAME_ROOM + NUMBER_ROOM];

			file_name(out, 0, first);
			if (!truncate(first, 0) || errno == ENOENT || errno == EINVAL)
				out->fd = open(first, FLAGS, 0666);
		}
	}
	switched = out;
	signal(SIGUSR2, switch_file);
	if (out->fd >= 0)
		return 0;
	fprintf(stderr, "ERROR: Couldn't open output file %s: %s\n", o->output ? o->output : "standard output", strerror(errno));
	return -EIO;
}

void stap_output_written(struct stap_output *out)
{
	const struct stap_opts *o = out->o;

	if (out->bulk_fd >= 0)
		take_bulk(out);
	else if (o->max_bytes && lseek(out->fd, 0, SEEK_END) >= (off_t)o->max_bytes)
		next_file(out);
}

int stap_output_close(struct stap_output *out)
{
	int e;

	switched = NULL;
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
