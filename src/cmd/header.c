/*
 * dtrace -h and -G.  The output is written only if the definition is valid, so that a failed build step leaves no
 * file that looks up to date.
 */
#include "cmd/header.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/child.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "cmd/cpp_args.h"
#include "d/cpp.h"
#include "d/parse.h"
#include "elf/obj.h"
#include "lang/diag.h"
#include "lib/d_msg.h"
#include "lang/source.h"
#include "sdt/sdt.h"

struct list {
	const char **v;
	size_t n, cap;
};

struct header_opts {
	char mode;		/* 'h' or 'G' */
	struct list scripts;	/* -s */
	struct list objects;	/* operands of -G */
	struct list programs;	/* -n -f -m -P: the letter, then the text */
	struct cpp_args cpp;
	const char *output;	/* -o, or NULL */
	bool keep, verbose;
	int bits;		/* 32, 64; 0: the compiler's */
};

/* --- options ------------------------------------------------------------------------------------------ */

/* The letters that take an argument, here or in another mode of dtrace. */
static const char with_arg[] = "bcDfiILmnopPsUxX";

/* Arguments for other dtraces that do not affect a provider definition. */
static bool is_foreign(const char *arg)
{
	static const char *const words[] = { "-fpic", "-fPIC", "-fpie", "-fPIE", "--types", "--no-pyparsing" };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(arg, words[i]))
			return true;
	return false;
}

bool header_asked(int argc, char **argv)
{
	const char *p;
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (argv[i][0] != '-' || argv[i][1] == '-' || is_foreign(argv[i]))
			continue;
		for (p = argv[i] + 1; *p; p++) {
			if (*p == 'h' || *p == 'G')
				return true;
			if (strchr(with_arg, *p)) {
				i += !p[1];
				break;
			}
		}
	}
	return false;
}

static void add(struct arena *a, struct list *l, const char *s)
{
	l->v = arena_grow(a, l->v, &l->cap, l->n, sizeof(*l->v));
	l->v[l->n++] = s;
}

static int usage(void)
{
	fputs("Usage: dtrace -h [-C] [-D name[=def]] [-U name] [-I path] -s script [-o header]\n"
	      "       dtrace -G [-C ...] [-32|-64] [-kv] {-s script | -n program} ... [-o object] [object ...]\n", stderr);
	return CMD_USAGE;
}

static int one_option(struct header_opts *o, struct arena *a, int c, const char *arg)
{
	if (cpp_args_take(&o->cpp, a, c, arg))
		return 0;
	switch (c) {
	case 'h':
	case 'G':
		if (o->mode && o->mode != c) {
			fputs("dtrace: only one of the options -h and -G can be given\n", stderr);
			return CMD_USAGE;
		}
		o->mode = (char)c;
		return 0;
	case 's':
		add(a, &o->scripts, arg);
		return 0;
	case 'n':
	case 'f':
	case 'm':
	case 'P':
		add(a, &o->programs, arena_printf(a, "%c%s", c, arg));
		return 0;
	case 'o':
		o->output = arg;
		return 0;
	case 'k':
		o->keep = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case '3':
	case '6':
		if (strcmp(arg, c == '3' ? "2" : "4") != 0)
			return usage();
		o->bits = c == '3' ? 32 : 64;
		return 0;
	case 1:
		add(a, &o->objects, arg);
		return 0;
	case 'b':	/* options for running a script: ignored */
	case 'L':
	case 'q':
	case 'S':
	case 'w':
	case 'x':
	case 'X':
	case 'Z':
		return 0;
	case ':':
		fprintf(stderr, "dtrace: option -%c requires an argument\n", optopt);
		return usage();
	default:
		if (optopt)
			fprintf(stderr, "dtrace: there is no option -%c beside -h and -G\n", optopt);
		else
			fprintf(stderr, "dtrace: there is no option %s beside -h and -G\n", arg);
		return usage();
	}
}

static int parse_options(struct header_opts *o, struct arena *a, int argc, char **argv)
{
	static const struct option longs[] = { { NULL, 0, NULL, 0 } };
	char **args = arena_alloc(a, ((size_t)argc + 1) * sizeof(*args));
	int i, n = 0, c, e;

	for (i = 0; i < argc; i++)
		if (!is_foreign(argv[i]))
			args[n++] = argv[i];
	opterr = 0;
	optind = 0;
	for (;;) {
		optopt = 0;
		c = getopt_long(n, args, "-:hGs:n:f:m:P:o:CD:U:I:Hkv3:6:b:L:qSwx:X:Z", longs, NULL);
		if (c == -1)
			break;
		e = one_option(o, a, c, c == '?' ? args[optind - 1] : optarg);
		if (e)
			return e;
	}
	if (!o->scripts.n && !(o->mode == 'G' && o->programs.n)) {
		fprintf(stderr, "dtrace: -%c needs a script with provider definitions: -s FILE\n", o->mode);
		return usage();
	}
	return 0;
}

/* "dir/probes.d": "probes.h"; without a script "d.out", as dtrace(1) has it */
static const char *default_output(struct arena *a, const struct header_opts *o)
{
	const char *s = o->scripts.n ? o->scripts.v[0] : NULL, *slash, *dot;

	if (!s)
		return "d.out";
	slash = strrchr(s, '/');
	s = slash ? slash + 1 : s;
	dot = strrchr(s, '.');
	return arena_printf(a, "%.*s.%c", dot && dot != s ? (int)(dot - s) : (int)strlen(s), s,
			    o->mode == 'h' ? 'h' : 'o');
}

static bool is_stdin(const char *path)
{
	return !strcmp(path, "-") || !strcmp(path, "/dev/stdin");
}

/* --- the definition ----------------------------------------------------------------------------------- */

static void say_where(void *ctx, const struct diag_msg *m, struct strbuf *b)
{
	(void)ctx;
	strbuf_puts(b, m->level == DIAG_WARNING ? "warning: " : "failed to compile script ");
	if (m->pos.src)
		strbuf_printf(b, "%s: ", m->pos.src->name);
	if (m->pos.line)
		strbuf_printf(b, "line %u: column %u: ", m->pos.line, m->pos.col);
}

/* Is the line at @s, after its '#', a directive of D or the C preprocessor? */
static bool is_directive(const char *s)
{
	static const char *const words[] = { "pragma", "line", "ident", "error", "warning", "include", "define",
					     "undef", "if", "ifdef", "ifndef", "elif", "else", "endif" };
	size_t i, len;

	s += strspn(s, " \t");
	len = strspn(s, "abcdefghijklmnopqrstuvwxyz");
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == len && !strncmp(words[i], s, len) && (!s[len] || strchr(" \t\r\n\"<", s[len])))
			return true;
	return (*s >= '0' && *s <= '9') || *s == '!';
}

/*
 * SystemTap's dtrace treats all other lines that begin with # as comments, and definitions such as libvirt's rely on
 * it.  Replace them by spaces, so that positions do not change.
 */
static struct source *without_hash_comments(struct arena *a, const struct source *src)
{
	char *text = arena_strndup(a, src->text, src->len), *line, *end;
	const char *first;

	for (line = text; line < text + src->len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + src->len - line));
		end = end ? end : text + src->len;
		first = line + strspn(line, " \t");
		if (*first == '#' && !is_directive(first + 1) && !memmem(first, (size_t)(end - first), "*/", 2))
			memset(line, ' ', (size_t)(end - line));
	}
	return source_text(a, src->name, text, src->len);
}

static int read_script(struct arena *a, struct header_opts *o, const char *path, struct source **ret)
{
	const char *why = NULL;
	int e;

	e = source_read(a, is_stdin(path) ? "-" : path, ret);
	if (e) {
		fprintf(stderr, "dtrace: failed to open %s: %s\n", path,
			e == -EFBIG ? "it is larger than 16 MiB, which no script is" : strerror(-e));
		return CMD_ERROR;
	}
	if (!o->cpp.wanted) {
		*ret = without_hash_comments(a, *ret);
		return 0;
	}
	e = d_cpp(a, *ret, "cpp", cpp_args_list(&o->cpp, a), ret, &why);
	if (e) {
		fprintf(stderr, "dtrace: failed to preprocess %s: %s\n", path, why ? why : strerror(-e));
		return CMD_ERROR;
	}
	if (why)
		fputs(why, stderr);
	return 0;
}

/* Read, parse and check all scripts.  0, or CMD_ERROR after messages. */
static int compile(struct arena *a, struct header_opts *o, struct sdt_defs *ret)
{
	static const struct {
		char letter;
		enum d_spec spec;
	} specs[] = { { 'n', D_SPEC_NAME }, { 'f', D_SPEC_FUNC }, { 'm', D_SPEC_MOD }, { 'P', D_SPEC_PROV } };
	const char *argv[] = { o->scripts.n ? o->scripts.v[0] : "dtrace" };
	struct strbuf text = { 0 };
	struct d_macros macros;
	struct source *src;
	struct d_prog *p;
	struct diag diag;
	size_t i;
	int e;

	diag_init(&diag, a);
	d_macros_init(&macros);
	macros.argv = argv;
	macros.argc = 1;
	p = d_prog_new(a, &diag, &macros);
	for (i = 0; i < o->scripts.n; i++) {
		e = read_script(a, o, o->scripts.v[i], &src);
		if (e)
			return e;
		d_parse(p, src, D_SPEC_FILE);
	}
	for (i = 0; i < o->programs.n; i++) {
		const char *program = o->programs.v[i];
		size_t k = 0;

		while (specs[k].letter != *program)
			k++;
		d_parse(p, source_text(a, "command line", program + 1, strlen(program + 1)), specs[k].spec);
	}
	if (!diag.errors)
		d_parse_end(p);
	if (!diag.errors)
		sdt_check(a, &diag, p, ret);
	d_msg_text(&diag, say_where, NULL, &text);
	fputs(strbuf_str(&text), stderr);
	strbuf_fini(&text);
	return diag.errors ? CMD_ERROR : 0;
}

/* --- output ------------------------------------------------------------------------------------------- */

static int write_all(int fd, const struct strbuf *b)
{
	size_t done = 0;
	ssize_t n;

	while (done < b->len) {
		n = write(fd, b->s + done, b->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return 0;
}

static int write_file(const char *path, const struct strbuf *b)
{
	bool std = !strcmp(path, "-") || !strcmp(path, "/dev/stdout");
	int fd = std ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int e;

	if (fd < 0) {
		e = -errno;
	} else {
		e = write_all(fd, b);
		if (!std && close(fd) && !e)
			e = -errno;
	}
	if (!e)
		return 0;
	fprintf(stderr, "dtrace: failed to write %s: %s\n", path, strerror(-e));
	return CMD_ERROR;
}

/*
 * Split @s into words as a shell does, with quotes and backslashes but without expansions, and add them to @l.
 */
static void add_words(struct arena *a, struct list *l, const char *s)
{
	char *word, *to, quote;

	for (;;) {
		while (*s && strchr(" \t\r\n", *s))
			s++;
		if (s[0] == '\\' && s[1] == '\n') {	/* a line continued in a makefile */
			s += 2;
			continue;
		}
		if (!*s)
			return;
		word = to = arena_alloc(a, strlen(s) + 1);
		for (quote = 0; *s && (quote || !strchr(" \t\r\n", *s)); s++) {
			if (quote ? *s == quote : *s == '"' || *s == '\'')
				quote = quote ? 0 : *s;
			else if (*s == '\\' && s[1] && quote != '\'')
				*to++ = *++s;
			else
				*to++ = *s;
		}
		add(a, l, word);
	}
}

/*
 * Run the compiler with @source as its standard input.  0, or CMD_ERROR after a message.
 */
static int run_compiler(const struct list *argv, int source)
{
	posix_spawn_file_actions_t actions;
	int status, e;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, source, STDIN_FILENO);
	e = child_spawn(&pid, argv->v[0], &actions, (char *const *)argv->v);
	posix_spawn_file_actions_destroy(&actions);
	if (e) {
		fprintf(stderr, "dtrace: failed to run the compiler %s: %s; CC names another\n", argv->v[0], strerror(e));
		return CMD_ERROR;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return CMD_ERROR;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	fprintf(stderr, "dtrace: the compiler %s failed to make the object\n", argv->v[0]);
	return CMD_ERROR;
}

/* The ELF class of the object @path: 32 or 64; 0 if it cannot be read. */
static int object_bits(const char *path)
{
	unsigned char ident[EI_NIDENT] = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ident, sizeof(ident));

	if (fd >= 0)
		close(fd);
	if (n != sizeof(ident) || memcmp(ident, ELFMAG, SELFMAG) != 0)
		return 0;
	return ident[EI_CLASS] == ELFCLASS64 ? 64 : 32;
}

static int make_object(struct arena *a, const struct header_opts *o, int source, const char *output,
		       const char *extra)
{
	/*
	 * Our options come last, to override.  Link-time optimisation would remove variables that only notes
	 * reference; sanitizers would add padding to data whose addresses are in the notes.
	 */
	static const char *const ours[] = { "-fno-lto", "-fno-sanitize=all", "-fPIC", "-g0", "-w", "-x", "c", "-c",
					    "-o" };
	const char *cc = getenv("CC"), *cflags = getenv("CFLAGS");
	struct list argv = { 0 };
	size_t i;

	add_words(a, &argv, cc && *cc ? cc : "cc");
	if (!argv.n)
		add(a, &argv, "cc");
	add_words(a, &argv, cflags ? cflags : "");
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (extra && !strcmp(ours[i], "-c"))
			add(a, &argv, extra);
		add(a, &argv, ours[i]);
	}
	add(a, &argv, output);
	add(a, &argv, "-");
	for (i = 0; o->verbose && i < argv.n; i++)
		fprintf(stderr, "%s%c", argv.v[i], i + 1 < argv.n ? ' ' : '\n');
	add(a, &argv, NULL);
	if (lseek(source, 0, SEEK_SET) < 0) {
		fprintf(stderr, "dtrace: %s\n", strerror(errno));
		return CMD_ERROR;
	}
	return run_compiler(&argv, source);
}

static int write_object(struct arena *a, const struct header_opts *o, const struct strbuf *text, const char *output)
{
	int fd, e = 0, bits;

	if (o->keep) {
		const char *kept = arena_printf(a, "%s.c", output);

		e = write_file(kept, text);
		if (e)
			return e;
		fprintf(stderr, "source: %s\n", kept);
	}
	fd = memfd_create("semaphores.c", MFD_CLOEXEC);
	if (fd < 0 || (e = write_all(fd, text))) {
		fprintf(stderr, "dtrace: failed to keep the source for the compiler: %s\n", strerror(fd < 0 ? errno : -e));
		if (fd >= 0)
			close(fd);
		return CMD_ERROR;
	}
	/* Compilers for a single class do not know -m32 and -m64, so use them only where necessary. */
	e = make_object(a, o, fd, output, NULL);
	bits = e ? 0 : object_bits(output);
	if (!e && o->bits && bits && bits != o->bits)
		e = make_object(a, o, fd, output, o->bits == 32 ? "-m32" : "-m64");
	close(fd);
	return e;
}

struct definitions {
	const struct sdt_defs *defs;
	const char *script, *object;
};

/* A marker of a provider that is defined here, but not in its definition, is a mistake that a run would not show. */
static int check_marker(void *ctx, const char *prov, const char *name)
{
	const struct definitions *d = ctx;
	bool defined = false;
	size_t i, j;

	for (i = 0; i < d->defs->n; i++) {
		const struct sdt_provider *p = &d->defs->providers[i];

		if (strcmp(p->name, prov) != 0)
			continue;
		defined = true;
		for (j = 0; j < p->nprobes; j++)
			if (!strcmp(p->probes[j].marker, name))
				return 0;
	}
	if (!defined)
		return 0;
	fprintf(stderr, "dtrace: failed to link script %s: undefined probe %s for probe provider %s: %s has such a marker, "
		"the definition of the provider does not\n", d->script, name, prov, d->object);
	return CMD_ERROR;
}

/* What cannot be read as an object is the linker's to complain about: build systems pass scripts and libraries, too. */
static int check_objects(const struct header_opts *o, const struct sdt_defs *defs, const char *script)
{
	struct definitions d = { defs, script, NULL };
	struct strbuf why = { 0 };
	struct obj *obj;
	size_t i;
	int e = 0;

	for (i = 0; i < o->objects.n && !e; i++) {
		d.object = o->objects.v[i];
		if (obj_open(d.object, &obj, &why))
			continue;
		e = obj_marker_names(obj, check_marker, &d);
		obj_close(obj);
	}
	strbuf_fini(&why);
	return e;
}

int header_main(int argc, char **argv)
{
	struct header_opts o = { 0 };
	struct arena *a = arena_new();
	struct strbuf text = { 0 };
	struct sdt_defs defs;
	const char *name;
	int e;

	e = parse_options(&o, a, argc, argv);
	if (e)
		goto out;
	name = o.scripts.n ? o.scripts.v[0] : "the command line";
	if (!o.output && is_stdin(name)) {
		if (o.mode == 'G') {
			fputs("dtrace: -G of standard input needs -o FILE\n", stderr);
			e = CMD_USAGE;
			goto out;
		}
		o.output = "-";
	}
	if (!o.output)
		o.output = default_output(a, &o);
	if (o.mode == 'G' && !strcmp(o.output, "-")) {
		fputs("dtrace: -G writes an object: -o FILE\n", stderr);
		e = CMD_USAGE;
		goto out;
	}
	e = compile(a, &o, &defs);
	if (e)
		goto out;
	name = is_stdin(name) ? "standard input" : name;
	if (o.mode == 'h')
		sdt_write_header(&text, &defs, name);
	else
		sdt_write_semaphores(&text, &defs, name);
	if (o.mode == 'G' && check_objects(&o, &defs, name)) {
		e = CMD_ERROR;
		goto out;
	}
	e = o.mode == 'h' ? write_file(o.output, &text) : write_object(a, &o, &text, o.output);
out:
	strbuf_fini(&text);
	arena_free(a);
	return e;
}
