/*
 * calls_show FILE: the entries of a file's procedure linkage table, and the calls of and jumps to them, one a line:
 *
 *	entry NAME ADDRESS
 *	call NAME ADDRESS
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "elf/obj.h"

enum { MAX = 4096 };

static struct {
	const char *names[MAX];
	uint64_t addrs[MAX];
	size_t n;
} entries;

static void note(void *ctx, const char *name, uint64_t addr)
{
	(void)ctx;
	if (entries.n == MAX)
		return;
	entries.names[entries.n] = name;
	entries.addrs[entries.n++] = addr;
	printf("entry %s %" PRIx64 "\n", name, addr);
}

static void show(void *ctx, size_t target, uint64_t addr)
{
	(void)ctx;
	printf("call %s %" PRIx64 "\n", entries.names[target], addr);
}

int main(int argc, char **argv)
{
	struct strbuf why = { 0 };
	struct obj *o;
	int err;

	if (argc != 2 || obj_open(argv[1], &o, &why)) {
		fprintf(stderr, "%s\n", strbuf_str(&why));
		return 2;
	}
	obj_each_plt(o, note, NULL);
	err = obj_each_call(o, entries.addrs, entries.n, show, NULL);
	obj_close(o);
	strbuf_fini(&why);
	return err != 0;
}
