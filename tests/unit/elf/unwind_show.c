/*
 * unwind_show FILE: the rows by which frames of a file's functions are walked, one a line, from the address on:
 *
 *	ADDRESS unknown|end
 *	ADDRESS sp|fp CFA FP RA		where the CFA is from that register; where the caller's frame pointer and the return
 *					address are from the CFA, u: not saved
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "elf/obj.h"
#include "elf/unwind.h"

static void show_saved(int64_t off)
{
	if (off)
		printf(" %" PRId64, off);
	else
		printf(" u");
}

static int show(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t n)
{
	bool links = *(bool *)ctx;

	for (uint32_t k = 0; k < n; k++) {
		unsigned int base = ABI_UNWIND_BASE(rows[k].base), at = ABI_UNWIND_LINK_AT(rows[k].cfa);
		int64_t fp = ABI_UNWIND_RBP(rows[k].base), ra = -8;

		if (links)
			ra = at == ABI_UNWIND_BEHIND ? fp + 8 : -8 * (int64_t)at;
		printf("%#" PRIx64, ((uint64_t)number << ABI_UNWIND_SHIFT) + rows[k].at);
		if (base == ABI_UNWIND_SP || base == ABI_UNWIND_BP) {
			printf(" %s %d", base == ABI_UNWIND_SP ? "sp" : "fp", links ? ABI_UNWIND_LINK_CFA(rows[k].cfa) : rows[k].cfa);
			show_saved(fp);
			show_saved(ra);
		} else {
			printf(base == ABI_UNWIND_END ? " end" : " unknown");
		}
		putchar('\n');
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct strbuf why = { 0 };
	struct obj *o;
	bool links;
	int err;

	if (argc != 2 || obj_open(argv[1], &o, &why)) {
		fprintf(stderr, "%s\n", strbuf_str(&why));
		return 2;
	}
	links = obj_info(o)->machine == EM_AARCH64;
	err = obj_unwind(o, show, &links);
	obj_close(o);
	strbuf_fini(&why);
	return err != 0;
}
