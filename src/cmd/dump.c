/*
 * dtap dump: what each thread of a Python process does now, including threads that wait (dtap_threads).
 */
#include "cmd/cmd.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ends.h"
#include "cmd/help.h"
#include "cmd/user.h"
#include "dtap.h"

static void put_json_string(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	}
	putchar('"');
}

/* Names come from the process: control characters must not reach the terminal. */
static void put_plain(const char *s)
{
	for (; *s; s++)
		putchar(iscntrl((unsigned char)*s) ? '?' : *s);
}

static void put_object(const struct dtap_object *o)
{
	printf("%s 0x%" PRIx64, o->type, o->address);
}

static void put_locks(const struct dtap_frame *f)
{
	for (size_t i = 0; i < f->nlocks; i++) {
		printf(f->locks[i].in_with ? "  inside `with` of " : "  a variable is ");
		put_object(&f->locks[i].lock);
		if (f->locks[i].in_with && f->locks[i].may_be_free)
			printf(", which Condition.wait may have released");
	}
}

static void put_frame(const struct dtap_frame *f)
{
	printf("    ");
	if (f->function)
		put_plain(f->function);
	else
		printf("0x%" PRIx64, f->address);
	if (f->file) {
		printf(f->is_python ? " (" : " [");
		put_plain(f->file);
	}
	if (f->is_python)
		printf(":%" PRIu32 ")", f->line);
	else if (f->file)
		putchar(']');
	put_locks(f);
	putchar('\n');
	for (size_t i = 0; i < f->nlocals; i++) {
		printf("        ");
		put_plain(f->locals[i].name);
		printf(" = ");
		put_plain(f->locals[i].value);
		putchar('\n');
	}
}

/* Evaluator frames are left out: the Python frames that they run are shown instead. */
static void put_frames(const struct dtap_thread *t)
{
	for (size_t i = 0; i < t->nframes; i++)
		if (!t->frames[i].is_evaluator)
			put_frame(&t->frames[i]);
}

/* The state while a process is printed. */
struct dump {
	bool json, tasks, locals;
	size_t n;		/* threads so far */
};

/* "thread 1, thread 2" */
static void put_tids(const uint32_t *v, size_t n, const char *between)
{
	for (size_t i = 0; i < n; i++)
		printf("%sthread %" PRIu32, i ? between : "", v[i]);
}

static void put_owner(const struct dtap_wait *w)
{
	if (w->owner_tid)
		printf(", which thread %" PRIu32 " has", w->owner_tid);
	else if (w->owner)
		printf(", which the thread with ident 0x%" PRIx64 " had, that ended", w->owner);
	if (w->ninside) {
		printf("; inside `with` of it: ");
		put_tids(w->inside, w->ninside, ", ");
	}
}

static void put_wait(const struct dtap_wait *w)
{
	if (w->kind == DTAP_WAIT_UNKNOWN)
		return;
	printf("    waits for ");
	if (w->kind == DTAP_WAIT_GIL)
		printf("the GIL");
	else if (w->kind == DTAP_WAIT_THREAD)
		printf("thread %" PRIu32 " to end", w->owner_tid);
	for (size_t i = 0; i < w->nobjects; i++) {
		printf(i ? " of " : w->kind == DTAP_WAIT_THREAD ? ", " : "");
		put_object(&w->objects[i]);
	}
	if (w->kind == DTAP_WAIT_LOCK)
		put_owner(w);
	puts(w->has_timeout ? ", with a timeout" : "");
	if (!w->ncycle)
		return;
	printf("    deadlock: it waits for ");
	put_tids(w->cycle, w->ncycle, ", which waits for ");
	puts(w->cycle_is_sure ? "" : " (unless a Lock was released inside its `with`)");
}

static void put_task(const struct dtap_task *k)
{
	printf("\nTask \"");
	put_plain(k->name);
	putchar('"');
	if (k->awaits_task) {
		printf(": awaits task \"");
		put_plain(k->awaits_task);
		putchar('"');
	} else if (k->awaits.address) {
		printf(": awaits ");
		put_plain(k->awaits.type);
		printf(" 0x%" PRIx64, k->awaits.address);
	}
	putchar('\n');
	for (size_t i = 0; i < k->nframes; i++)
		put_frame(&k->frames[i]);
}

/* "    runs task "x"; 3 more tasks" */
static void put_task_names(const struct dtap_thread *t)
{
	const char *more = "";
	size_t waiting = 0;

	if (!t->ntasks)
		return;
	printf("    asyncio: ");
	for (size_t i = 0; i < t->ntasks; i++) {
		waiting += !t->tasks[i].runs;
		if (!t->tasks[i].runs)
			continue;
		printf("%stask \"", more);
		put_plain(t->tasks[i].name);
		printf("\" has its turn");
		more = ", ";
	}
	if (waiting)
		printf("%s%zu%s task%s wait%s", more, waiting, t->tasks_complete ? "" : " or more", waiting > 1 ? "s" : "",
		       waiting > 1 ? "" : "s");
	putchar('\n');
}

static void put_missing_locals(const struct dtap_thread *t)
{
	if (!t->is_python || !t->nframes || t->locals_complete)
		return;
	puts(t->knows_locals ? "    (it was stopped for 2 ms, in which not all variables could be read)" :
			       "    (without variables: it could not be stopped, or this version's layout is not known)");
}

static void put_thread(const struct dtap_thread *t, const struct dump *d)
{
	if (t->tid)
		printf("\nThread %" PRIu32, t->tid);
	else
		printf("\nThread with ident 0x%" PRIx64, t->ident);
	if (t->tid || t->python_name) {
		printf(" \"");
		put_plain(t->python_name ? t->python_name : t->name);
		putchar('"');
	}
	printf("%s%s", *t->state ? ": " : "", t->state);
	if (t->knows_gil && t->has_gil)
		printf("%s has the GIL", *t->state ? "," : ":");
	if (!t->is_exact)
		printf(" (it ran while it was read: frames may be of several moments)");
	putchar('\n');
	put_wait(&t->wait);
	put_task_names(t);
	if (d->locals)
		put_missing_locals(t);
	put_frames(t);
	if (!t->is_complete || !t->natives_complete)
		puts("    ...");
	else if (!t->nframes && !t->is_python)
		puts("    (none of Python's)");
	for (size_t i = 0; i < t->ntasks && d->tasks; i++)
		if (!t->tasks[i].runs)
			put_task(&t->tasks[i]);
}

static void put_json_object(const struct dtap_object *o)
{
	printf("\"type\":");
	put_json_string(o->type);
	printf(",\"address\":%" PRIu64, o->address);
}

static void put_json_locks(const struct dtap_frame *f)
{
	if (f->nlocks)
		printf(",\"locks\":[");
	for (size_t i = 0; i < f->nlocks; i++) {
		printf(i ? ",{" : "{");
		put_json_object(&f->locks[i].lock);
		printf(",\"with\":%s", f->locks[i].in_with ? "true" : "false");
		printf(f->locks[i].may_be_free ? ",\"maybe_free\":true}" : "}");
	}
	if (f->nlocks)
		putchar(']');
}

static void put_json_locals(const struct dtap_frame *f)
{
	printf(",\"locals\":{");
	for (size_t i = 0; i < f->nlocals; i++) {
		if (i)
			putchar(',');
		put_json_string(f->locals[i].name);
		putchar(':');
		put_json_string(f->locals[i].value);
	}
	putchar('}');
}

static void put_json_frames(const struct dtap_frame *frames, size_t nframes, bool python, bool locals)
{
	size_t n = 0;

	for (size_t i = 0; i < nframes; i++) {
		const struct dtap_frame *f = &frames[i];

		if (f->is_python != python)
			continue;
		printf("%s{\"function\":", n++ ? "," : "");
		put_json_string(f->function ? f->function : "");
		printf(python ? ",\"file\":" : ",\"module\":");
		put_json_string(f->file ? f->file : "");
		printf(python ? ",\"line\":%" PRIu64 : ",\"address\":%" PRIu64, python ? f->line : f->address);
		put_json_locks(f);
		if (locals && python)
			put_json_locals(f);
		putchar('}');
	}
}

static void put_json_tids(const char *name, const uint32_t *v, size_t n)
{
	printf(",\"%s\":[", name);
	for (size_t i = 0; i < n; i++)
		printf("%s%" PRIu32, i ? "," : "", v[i]);
	putchar(']');
}

static void put_json_wait(const struct dtap_wait *w)
{
	static const char *const kinds[] = { [DTAP_WAIT_GIL] = "gil", [DTAP_WAIT_LOCK] = "lock", [DTAP_WAIT_THREAD] = "thread" };

	if (w->kind == DTAP_WAIT_UNKNOWN) {
		printf(",\"waits\":null");
		return;
	}
	printf(",\"waits\":{\"for\":\"%s\",\"timeout\":%s", kinds[w->kind], w->has_timeout ? "true" : "false");
	printf(",\"objects\":[");
	for (size_t i = 0; i < w->nobjects; i++) {
		printf(i ? ",{" : "{");
		put_json_object(&w->objects[i]);
		putchar('}');
	}
	putchar(']');
	if (w->owner_tid)
		printf(",\"owner\":%" PRIu32, w->owner_tid);
	if (w->owner)
		printf(",\"owner_ident\":%" PRIu64, w->owner);
	if (w->kind == DTAP_WAIT_LOCK)
		put_json_tids("inside", w->inside, w->ninside);
	if (w->ncycle) {
		put_json_tids("deadlock", w->cycle, w->ncycle);
		printf(",\"deadlock_sure\":%s", w->cycle_is_sure ? "true" : "false");
	}
	putchar('}');
}

static void put_json_tasks(const struct dtap_thread *t)
{
	printf(",\"tasks\":[");
	for (size_t i = 0; i < t->ntasks; i++) {
		const struct dtap_task *k = &t->tasks[i];

		printf(i ? ",{\"name\":" : "{\"name\":");
		put_json_string(k->name);
		printf(",\"runs\":%s", k->runs ? "true" : "false");
		if (k->awaits_task) {
			printf(",\"awaits_task\":");
			put_json_string(k->awaits_task);
		}
		if (k->awaits.address && !k->awaits_task) {
			printf(",\"awaits\":{");
			put_json_object(&k->awaits);
			putchar('}');
		}
		printf(",\"frames\":[");
		put_json_frames(k->frames, k->nframes, true, false);
		printf("]}");
	}
	printf("],\"tasks_complete\":%s", t->tasks_complete ? "true" : "false");
}

static void put_json_thread(const struct dtap_thread *t, bool locals)
{
	bool natives = false;

	for (size_t i = 0; i < t->nframes; i++)
		natives |= !t->frames[i].is_python;
	printf("{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ident\":%" PRIu64 ",\"name\":", t->pid, t->tid, t->ident);
	put_json_string(t->name);
	if (t->python_name) {
		printf(",\"python_name\":");
		put_json_string(t->python_name);
	}
	printf(",\"state\":");
	put_json_string(t->state);
	if (t->knows_gil)
		printf(",\"gil\":%s", t->has_gil ? "true" : "false");
	if (t->knows_locks)
		put_json_wait(&t->wait);
	printf(",\"exact\":%s,\"complete\":%s,\"frames\":[", t->is_exact ? "true" : "false", t->is_complete ? "true" : "false");
	put_json_frames(t->frames, t->nframes, true, t->knows_locals);
	printf("]");
	if (locals)
		printf(",\"locals_complete\":%s", t->locals_complete ? "true" : "false");
	if (t->ntasks)
		put_json_tasks(t);
	if (natives) {
		printf(",\"native\":[");
		put_json_frames(t->frames, t->nframes, false, false);
		printf("],\"native_complete\":%s", t->natives_complete ? "true" : "false");
	}
	puts("}");
}

static int put(void *ctx, const struct dtap_thread *t)
{
	struct dump *d = ctx;

	if (d->json) {
		if (t->is_python)
			put_json_thread(t, d->locals);
		return 0;
	}
	if (!d->n++)
		printf("Process %" PRIu32 ": %s\nPython %d.%d%s%s\n", t->pid, t->command, t->version >> 8, t->version & 0xff,
		       t->knows_gil ? "" : "; of this version it is not known who has the GIL",
		       t->knows_locks ? "" : "; of this version it is not known which lock a thread waits for");
	put_thread(t, d);
	return 0;
}

struct request {
	struct dump dump;
	unsigned int what;		/* DTAP_THREADS_... */
	const char *output;		/* a file, or NULL */
	bool all, by_user;
	uid_t user;
	uint32_t pids[64];
	size_t n;
};

static int dump(struct request *r, uint32_t pid, char *why, size_t size)
{
	/* What is printed before it is a process. */
	if (r->dump.n && !r->dump.json)
		putchar('\n');
	r->dump.n = 0;
	return dtap_threads(pid, r->what, why, size, put, &r->dump);
}

static int dump_named(struct request *r)
{
	int code = CMD_OK;
	char why[512];

	for (size_t i = 0; i < r->n; i++) {
		if (!dump(r, r->pids[i], why, sizeof(why)))
			continue;
		fprintf(stderr, "dtap dump: %s\n", why);
		code = CMD_ERROR;
	}
	return code;
}

/* Is it a process of the user that is asked for?  /proc/PID is its effective user's, as far as others may see it. */
static bool is_meant(const struct request *r, const char *pid)
{
	struct stat st;
	char path[32];

	if (!isdigit((unsigned char)*pid) || strtol(pid, NULL, 10) == getpid())
		return false;
	snprintf(path, sizeof(path), "/proc/%.10s", pid);
	return r->all || (!stat(path, &st) && st.st_uid == r->user);
}

/* Those that are no Pythons, or may not be read, are left out. */
static int dump_found(struct request *r)
{
	DIR *d = opendir("/proc");
	size_t n = 0;
	char why[512];

	for (const struct dirent *e; d && (e = readdir(d)); )
		if (is_meant(r, e->d_name))
			n += !dump(r, (uint32_t)strtoul(e->d_name, NULL, 10), why, sizeof(why));
	if (d)
		closedir(d);
	if (!n)
		fprintf(stderr, "dtap dump: there is no Python %s\n", r->all ? "that may be read" : "of that user that may be read");
	return n ? CMD_OK : CMD_ERROR;
}

static const char help[] =
	"usage: dtap dump [-jlnt] [-o FILE] {-p PID [-p PID]... | -u USER | -a}\n"
	"\n"
	"Show what each thread of a Python does now: its stack, the system call and the lock that it waits for,\n"
	"who has that lock, deadlocks, and who has the GIL.  Nothing is loaded into the process, and a process\n"
	"that hangs is shown as well.\n"
	"\n"
	"  -p, --pid PID      the process; may be given many times\n"
	"  -u, --user USER    every Python of that user\n"
	"  -a, --all          every Python\n"
	"  -l, --locals       the variables of each frame, as by repr(); no code of the process runs for it\n"
	"  -n, --native       native frames as well\n"
	"  -t, --tasks        the tasks of asyncio that wait: the stacks of their coroutines, and what they await\n"
	"  -j, --json         a line of JSON for each thread of Python's\n"
	"  -o, --output FILE  write to the file; JSON if its name ends in .json or .jsonl\n"
	"  -h, --help         this text\n";

static int add_pid(struct request *r, const char *text)
{
	unsigned long long pid;
	char *end;

	pid = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || !pid || pid > INT32_MAX) {
		fprintf(stderr, "dtap dump: '%s' is no process id\n", text);
		return CMD_USAGE;
	}
	if (r->n == sizeof(r->pids) / sizeof(r->pids[0])) {
		fprintf(stderr, "dtap dump: no more than %zu processes at a time\n", r->n);
		return CMD_USAGE;
	}
	r->pids[r->n++] = (uint32_t)pid;
	return CMD_OK;
}

static int set_user(struct request *r, const char *text)
{
	r->by_user = user_of(text, &r->user);
	if (!r->by_user)
		fprintf(stderr, "dtap dump: there is no user '%s'\n", text);
	return r->by_user ? CMD_OK : CMD_USAGE;
}

/* One option.  CMD_OK, or the exit code. */
static int take(struct request *r, int c)
{
	switch (c) {
	case 'p':
		return add_pid(r, optarg);
	case 'u':
		return set_user(r, optarg);
	case 'a':
		r->all = true;
		break;
	case 'j':
		r->dump.json = true;
		break;
	case 'o':
		r->output = optarg;
		r->dump.json = r->dump.json || ends_with(optarg, ".json") || ends_with(optarg, ".jsonl");
		break;
	case 'n':
		r->what |= DTAP_THREADS_NATIVES;
		break;
	case 'l':
		r->what |= DTAP_THREADS_LOCALS;
		r->dump.locals = true;
		break;
	case 't':
		r->dump.tasks = true;
		break;
	default:
		fprintf(stderr, "dtap dump: it is of this moment; for some time use dtap sample -d SECONDS\n");
		return CMD_USAGE;
	}
	return CMD_OK;
}

int cmd_dump(int argc, char **argv)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, 'p' }, { "json", no_argument, NULL, 'j' },
		{ "user", required_argument, NULL, 'u' }, { "all", no_argument, NULL, 'a' },
		{ "native", no_argument, NULL, 'n' }, { "locals", no_argument, NULL, 'l' },
		{ "tasks", no_argument, NULL, 't' }, { "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' }, { 0 },
	};
	struct request r = { 0 };
	int c, code = CMD_OK;

	while (!code && (c = getopt_long(argc, argv, "p:u:ajlnto:hd:i:", options, NULL)) != -1) {
		if (c == 'h' || c == '?')
			return help_or_mistake(c, help);
		code = take(&r, c);
	}
	if (code)
		return code;
	if (argc > optind && !argv[optind][strspn(argv[optind], "0123456789")]) {
		fprintf(stderr, "dtap dump: a process is named by -p: dtap dump -p %s\n", argv[optind]);
		return CMD_USAGE;
	}
	if (!help_has_words(argc, 0, help))
		return CMD_USAGE;
	if ((r.n > 0) + r.all + r.by_user != 1) {
		fputs(r.n || r.all || r.by_user ? "dtap dump: it is -p, or -u, or -a\n" : help, stderr);
		return CMD_USAGE;
	}
	if (r.output && !freopen(r.output, "we", stdout)) {
		fprintf(stderr, "dtap dump: cannot write %s: %s\n", r.output, strerror(errno));
		return CMD_ERROR;
	}
	return r.n ? dump_named(&r) : dump_found(&r);
}
