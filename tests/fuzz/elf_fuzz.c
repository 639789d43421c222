/*
 * Any bytes as an ELF file: markers, their operands and functions, imports, call frame information.  The file lies in memory but is
 * read through a descriptor, as real ones are.
 */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "elf/obj.h"
#include "elf/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A search needs rows in order, the first of them at the start of the page. */
static int page(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t n)
{
	unsigned int *pages = ctx;

	(void)number;
	if (!n || rows[0].at)
		__builtin_trap();
	for (uint32_t i = 1; i < n; i++)
		if (rows[i].at <= rows[i - 1].at || rows[i].at >= 1 << ABI_UNWIND_SHIFT)
			__builtin_trap();
	return ++*pages > 10000;	/* enough */
}

static void take_entry(void *ctx, const char *name, uint64_t addr)
{
	volatile size_t seen = strlen(name) + addr;

	(void)ctx;
	(void)seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "execve", "posix_spawn", NULL };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	const struct obj_marker *m;
	struct arch_operand ops[12];
	struct strbuf why = { 0 };
	struct obj *o = NULL;
	unsigned int pages = 0;
	size_t n = 0;
	uint64_t off;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	if (!obj_open_fd(fd, "fuzz", &o, &why)) {
		if (obj_markers(o, &m, &n, &why))
			n = 0;
		for (size_t i = 0; i < n; i++) {
			obj_operands(o, &m[i], ops, 12);
			obj_func_at(o, m[i].addr, &off);
			if (m[i].off >= size)
				__builtin_trap();
		}
		obj_imports(o, names);
		obj_each_plt(o, take_entry, NULL);
		obj_links(o);
		obj_func_at(o, obj_info(o)->entry, NULL);
		obj_unwind(o, page, &pages);
	} else if (!why.len) {
		__builtin_trap();	/* each refusal has its reason */
	}
	obj_close(o);
	strbuf_fini(&why);
	return 0;
}
