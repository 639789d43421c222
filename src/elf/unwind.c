#include "elf/unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "elf/priv.h"

/* DWARF's numbers of registers (System V ABI, AMD64 supplement, 3.6.2). */
enum { REG_RBP = 6, REG_RSP = 7, REG_RA = 16 };

enum { RBP_MAX = 8191, PAGE = 1 << ABI_UNWIND_SHIFT, NOWHERE = 0xffff };

/* Rows on their way into pages. */
struct making {
	int (*page)(void *ctx, uint32_t number, const struct abi_unwind_page *rows);
	void *ctx;
	struct abi_unwind_page rows;
	unsigned int n;
	bool begun, full;
	uint32_t number;		/* of the page at hand */
	struct abi_unwind_row last;	/* what holds behind the last row */
};

static int flush(struct making *m)
{
	bool empty = !m->n || (m->n == 1 && m->rows.v[0].base == ABI_UNWIND_UNKNOWN);

	for (unsigned int i = m->n; i < ABI_UNWIND_ROWS; i++)
		m->rows.v[i] = (struct abi_unwind_row){ .at = NOWHERE };
	return empty ? 0 : m->page(m->ctx, m->number, &m->rows);
}

static void begin(struct making *m, uint32_t number)
{
	m->number = number;
	m->begun = true;
	m->full = false;
	m->n = 1;
	m->rows.v[0] = m->last;
	m->rows.v[0].at = 0;
}

/* From @addr on @row holds. */
static int add(struct making *m, uint64_t addr, struct abi_unwind_row row)
{
	uint32_t number = (uint32_t)(addr >> ABI_UNWIND_SHIFT);
	int e = 0;

	while (m->begun && m->number < number && !e) {
		e = flush(m);
		/* What nothing is known of has no pages. */
		begin(m, m->last.base == ABI_UNWIND_UNKNOWN ? number : m->number + 1);
	}
	if (!m->begun)
		begin(m, number);
	row.at = (uint16_t)(addr & (PAGE - 1));
	if (e || m->number != number || (row.base == m->last.base && row.cfa == m->last.cfa))
		return e;
	m->last = row;
	if (m->full)
		return 0;
	if (m->rows.v[m->n - 1].at == row.at) {
		m->rows.v[m->n - 1] = row;
	} else if (m->n < ABI_UNWIND_ROWS - 1) {
		m->rows.v[m->n++] = row;
	} else {		/* too many: rather nothing than something wrong */
		m->rows.v[m->n++] = (struct abi_unwind_row){ .at = row.at };
		m->full = true;
	}
	return 0;
}

/* The rule for @frame. */
static struct abi_unwind_row rule(Dwarf_Frame *frame)
{
	struct abi_unwind_row unknown = { 0 }, row = { 0 };
	Dwarf_Op mem[3], *ops;
	int64_t cfa, rbp = 0;
	uint64_t reg;
	size_t n;

	if (!dwarf_frame_register(frame, REG_RA, mem, &ops, &n) && !n && ops == mem) {
		row.base = ABI_UNWIND_END;
		return row;
	}
	if (dwarf_frame_cfa(frame, &ops, &n) || n != 1)
		return unknown;
	if (ops->atom == DW_OP_bregx) {
		reg = ops->number;
		cfa = (int64_t)ops->number2;
	} else if (ops->atom >= DW_OP_breg0 && ops->atom <= DW_OP_breg31) {
		reg = ops->atom - DW_OP_breg0;
		cfa = (int64_t)ops->number;
	} else {
		return unknown;
	}
	if ((reg != REG_RSP && reg != REG_RBP) || cfa != (int32_t)cfa || dwarf_frame_register(frame, REG_RBP, mem, &ops, &n))
		return unknown;
	if (n) {		/* saved, at the CFA and a number */
		if (n > 2 || ops[0].atom != DW_OP_call_frame_cfa || (n == 2 && ops[1].atom != DW_OP_plus_uconst))
			return unknown;
		rbp = n == 2 ? (int64_t)ops[1].number : 0;
		if (!rbp || rbp < -RBP_MAX || rbp > RBP_MAX)
			return unknown;
	}
	row.base = ABI_UNWIND_PACK(reg == REG_RSP ? ABI_UNWIND_SP : ABI_UNWIND_BP, rbp);
	row.cfa = (int32_t)cfa;
	return row;
}

/* The rows of the function at @addr, behind which another begins at @next. */
static int add_function(struct making *m, Dwarf_CFI *cfi, uint64_t addr, uint64_t next)
{
	int e = 0;

	while (addr < next) {
		Dwarf_Frame *frame;
		Dwarf_Addr start, end;
		bool is_signal;

		if (dwarf_cfi_addrframe(cfi, addr, &frame))
			break;
		dwarf_frame_info(frame, &start, &end, &is_signal);
		e = add(m, addr, rule(frame));
		free(frame);
		if (e || end <= addr)
			return e;
		addr = end;
	}
	return e || addr >= next ? e : add(m, addr, (struct abi_unwind_row){ 0 });
}

/*
 * Where functions start: the table of .eh_frame_hdr (Linux Standard Base Core, 10.6.2), in the form that all linkers
 * write, relative to itself in 4 bytes.
 */
static int read_starts(const struct obj *o, uint64_t *addr, int32_t **ret, uint32_t *n)
{
	uint8_t head[12];
	size_t nphdrs;
	GElf_Phdr ph;

	if (elf_getphdrnum(o->elf, &nphdrs))
		return -ENOENT;
	for (size_t i = 0; i < nphdrs; i++)
		if (gelf_getphdr(o->elf, (int)i, &ph) && ph.p_type == PT_GNU_EH_FRAME)
			break;
		else if (i + 1 == nphdrs)
			return -ENOENT;
	if (!nphdrs || ph.p_filesz < sizeof(head) || obj_read(o, ph.p_offset, head, sizeof(head)) || head[0] != 1 ||
	    head[2] != DW_EH_PE_udata4 || head[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return -ENOENT;
	memcpy(n, head + 8, sizeof(*n));
	if (!*n || *n > (ph.p_filesz - sizeof(head)) / 8)
		return -ENOENT;
	*ret = malloc(8 * (size_t)*n);
	if (!*ret)
		return -ENOMEM;
	*addr = ph.p_vaddr;
	return obj_read(o, ph.p_offset + sizeof(head), *ret, 8 * (size_t)*n);
}

int obj_unwind(struct obj *o, int (*page)(void *ctx, uint32_t number, const struct abi_unwind_page *rows), void *ctx)
{
	struct making m = { .page = page, .ctx = ctx };
	uint64_t base = 0, last = 0;
	int32_t *starts = NULL;
	Dwarf_CFI *cfi = NULL;
	uint32_t n = 0;
	int e;

	if (o->info.machine != EM_X86_64)
		return -ENOTSUP;
	e = read_starts(o, &base, &starts, &n);
	if (e)
		goto out;
	cfi = dwarf_getcfi_elf(o->elf);
	e = cfi ? 0 : -ENOENT;
	for (uint32_t i = 0; i < n && !e; i++) {
		uint64_t addr = base + (uint64_t)(int64_t)starts[2 * i];

		if (addr < last || addr >> ABI_UNWIND_SHIFT > UINT32_MAX)
			continue;
		last = addr;
		e = add_function(&m, cfi, addr, i + 1 < n ? base + (uint64_t)(int64_t)starts[2 * i + 2] : UINT64_MAX);
	}
	if (!e && m.begun)
		e = flush(&m);
out:
	if (cfi)
		dwarf_cfi_end(cfi);
	free(starts);
	return e;
}
