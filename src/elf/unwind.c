#include "elf/unwind.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "elf/libdw.h"
#include "elf/priv.h"

/* Register numbers of DWARF (System V ABI, AMD64 supplement, 3.6.2; DWARF for the Arm 64-bit Architecture, 4.1). */
struct machine {
	uint16_t e_machine;
	uint8_t fp, sp, ra;
	bool links;			/* a call leaves the return address in register @ra, not at CFA - 8 */
};

static const struct machine machines[] = { { EM_X86_64, 6, 7, 16, false }, { EM_AARCH64, 29, 31, 30, true } };

/* On aarch64: the return address is signed from here on, or no longer.  Its signature is removed anyway. */
enum { CFA_NEGATE_RA_STATE = 0x2d };

enum { RBP_MAX = 8191, PAGE = 1 << ABI_UNWIND_SHIFT, SAVED_MAX = 8 };

/* Collects rows into pages. */
struct making {
	int (*page)(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t n);
	void *ctx;
	struct abi_unwind_row rows[PAGE];	/* at most one for each byte */
	uint32_t n;
	bool begun;
	uint32_t number;		/* of the current page */
	uint64_t addr;			/* of the last row */
	struct abi_unwind_row last;	/* valid from @addr on */
};

static int flush(struct making *m)
{
	if (m->n == 1 && m->rows[0].base == ABI_UNWIND_UNKNOWN)
		return 0;
	return m->page(m->ctx, m->number, m->rows, m->n);
}

static void begin(struct making *m, uint32_t number)
{
	m->number = number;
	m->begun = true;
	m->n = 1;
	m->rows[0] = m->last;
	m->rows[0].at = 0;
}

/* @row is valid from @addr on.  Addresses must increase; a row before the last one (overlapping FDEs) is ignored. */
static int add(struct making *m, uint64_t addr, struct abi_unwind_row row)
{
	uint32_t number = (uint32_t)(addr >> ABI_UNWIND_SHIFT);
	int e = 0;

	if (addr < m->addr || addr >> ABI_UNWIND_SHIFT > UINT32_MAX)
		return 0;
	m->addr = addr;

	while (m->begun && m->number < number && !e) {
		e = flush(m);
		/* Pages without known rows are skipped. */
		begin(m, m->last.base == ABI_UNWIND_UNKNOWN ? number : m->number + 1);
	}
	if (!m->begun)
		begin(m, number);
	row.at = (uint16_t)(addr & (PAGE - 1));
	if (e || m->number != number || (row.base == m->last.base && row.cfa == m->last.cfa))
		return e;
	m->last = row;
	if (m->rows[m->n - 1].at == row.at)
		m->rows[m->n - 1] = row;
	else
		m->rows[m->n++] = row;
	return 0;
}

/* --- a function's instructions (DWARF 5, 6.4.2) ---------------------------------------------------------- */

/* Where the caller's registers are, as far as a row needs that. */
struct rules {
	bool known;			/* the CFA is a register and a number */
	uint64_t reg;
	int64_t off;
	int64_t rbp;			/* saved at CFA + rbp; 0: not saved */
	bool rbp_known, ends;
	int64_t ra;			/* where there is a link register: saved at CFA + ra; 0: not saved */
	bool ra_known;
};

struct reading {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t read_fixed(struct reading *r, unsigned int n)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < n) {
		r->bad = true;
		r->p = r->end;
		return 0;
	}
	memcpy(&v, r->p, n);
	r->p += n;
	return v;
}

static uint64_t read_uleb(struct reading *r)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t b;

	do {
		b = (uint8_t)read_fixed(r, 1);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80 && !r->bad);
	return v;
}

static int64_t read_sleb(struct reading *r)
{
	const uint8_t *from = r->p;
	uint64_t v = read_uleb(r);
	unsigned int bits = 7 * (unsigned int)(r->p - from);

	if (!r->bad && bits < 64 && r->p[-1] & 0x40)
		v |= ~(uint64_t)0 << bits;
	return (int64_t)v;
}

/* Skip an expression, or another block that begins with its length. */
static void skip_block(struct reading *r)
{
	uint64_t n = read_uleb(r);

	if (n > (size_t)(r->end - r->p))
		r->bad = true;
	else
		r->p += n;
}

/* The initial state of a function, from its CIE. */
struct origin {
	const struct machine *machine;
	Dwarf_Off off;			/* of the CIE */
	bool usable;
	uint64_t code_align;
	int64_t data_align;
	bool has_size;			/* FDEs have augmentation data */
	struct rules rules;
};

struct running {
	struct making *m;		/* NULL: these are the CIE's instructions */
	const struct origin *from;
	uint64_t addr;
	struct rules now;
};

/* Where the return address is, in the words of abi/unwind.h; -1: nowhere that they can say. */
static int link_at(const struct rules *s)
{
	if (!s->ra_known)
		return -1;
	if (!s->ra)
		return 0;
	if (s->rbp && s->ra == s->rbp + 8)
		return ABI_UNWIND_BEHIND;
	return s->ra < 0 && s->ra % 8 == 0 && -s->ra / 8 < ABI_UNWIND_BEHIND ? (int)(-s->ra / 8) : -1;
}

static struct abi_unwind_row row_of(const struct machine *m, const struct rules *s)
{
	struct abi_unwind_row row = { 0 };
	int at = m->links ? link_at(s) : 0;

	if (s->ends) {
		row.base = ABI_UNWIND_END;
		return row;
	}
	if (!s->known || !s->rbp_known || (s->reg != m->sp && s->reg != m->fp) || s->off != (int32_t)s->off ||
	    s->rbp < -RBP_MAX || s->rbp > RBP_MAX)
		return row;
	if (m->links && (at < 0 || s->off != ABI_UNWIND_LINK_CFA(s->off)))
		return row;
	row.base = ABI_UNWIND_PACK(s->reg == m->sp ? ABI_UNWIND_SP : ABI_UNWIND_BP, s->rbp);
	row.cfa = m->links ? ABI_UNWIND_LINK_PACK(s->off, at) : (int32_t)s->off;
	return row;
}

/* The present rules are valid for the next @delta code units: add their row. */
static int advance(struct running *f, uint64_t delta)
{
	int e = f->m && delta ? add(f->m, f->addr, row_of(f->from->machine, &f->now)) : 0;

	f->addr += delta * f->from->code_align;
	return e;
}

/* Register @reg is saved at CFA + @off, or (!@saved) in a way that rows cannot express. */
static void set_register(const struct machine *m, struct rules *s, uint64_t reg, bool saved, int64_t off)
{
	if (reg == m->fp) {
		s->rbp_known = saved && off;
		s->rbp = off;
	} else if (reg == m->ra && m->links) {
		s->ra_known = saved && off;
		s->ra = off;
	} else if (reg == m->ra && (!saved || off != -8)) {
		s->known = false;
	}
}

static void restore_register(const struct machine *m, struct rules *s, uint64_t reg, const struct rules *first)
{
	if (reg == m->fp) {
		s->rbp = first->rbp;
		s->rbp_known = first->rbp_known;
	} else if (reg == m->ra) {
		s->ra = first->ra;
		s->ra_known = first->ra_known;
	}
}

/* Execute one instruction.  0, or a negative errno: it is invalid. */
static int run_one(struct running *f, struct reading *r, struct rules *saved, unsigned int *nsaved)
{
	const struct machine *m = f->from->machine;
	const struct rules *first = &f->from->rules;
	int64_t align = f->from->data_align;
	uint8_t op = (uint8_t)read_fixed(r, 1);
	struct rules *s = &f->now;
	uint64_t reg;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(f, op & 0x3f);
	case DW_CFA_offset:
		set_register(m, s, op & 0x3f, true, (int64_t)read_uleb(r) * align);
		return 0;
	case DW_CFA_restore:
		restore_register(m, s, op & 0x3f, first);
		return 0;
	default:
		break;
	}
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_advance_loc1:
		return advance(f, read_fixed(r, 1));
	case DW_CFA_advance_loc2:
		return advance(f, read_fixed(r, 2));
	case DW_CFA_advance_loc4:
		return advance(f, read_fixed(r, 4));
	case DW_CFA_offset_extended:
		reg = read_uleb(r);
		set_register(m, s, reg, true, (int64_t)read_uleb(r) * align);
		return 0;
	case DW_CFA_offset_extended_sf:
		reg = read_uleb(r);
		set_register(m, s, reg, true, read_sleb(r) * align);
		return 0;
	case DW_CFA_restore_extended:
		restore_register(m, s, read_uleb(r), first);
		return 0;
	case DW_CFA_undefined:
		reg = read_uleb(r);
		s->ends |= reg == m->ra;
		return 0;
	case DW_CFA_same_value:
		reg = read_uleb(r);
		if (reg == m->fp) {
			s->rbp = 0;
			s->rbp_known = true;
		} else if (reg == m->ra) {
			s->ra = 0;
			s->ra_known = true;
		}
		return 0;
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		set_register(m, s, read_uleb(r), false, 0);
		read_uleb(r);
		return 0;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		set_register(m, s, read_uleb(r), false, 0);
		skip_block(r);
		return 0;
	case DW_CFA_remember_state:
		if (*nsaved == SAVED_MAX)
			return -EINVAL;
		saved[(*nsaved)++] = *s;
		return 0;
	case DW_CFA_restore_state:
		if (!*nsaved)
			return -EINVAL;
		*s = saved[--*nsaved];
		return 0;
	case DW_CFA_def_cfa:
		s->reg = read_uleb(r);
		s->off = (int64_t)read_uleb(r);
		s->known = true;
		return 0;
	case DW_CFA_def_cfa_sf:
		s->reg = read_uleb(r);
		s->off = read_sleb(r) * align;
		s->known = true;
		return 0;
	case DW_CFA_def_cfa_register:
		s->reg = read_uleb(r);
		return 0;
	case DW_CFA_def_cfa_offset:
		s->off = (int64_t)read_uleb(r);
		return 0;
	case DW_CFA_def_cfa_offset_sf:
		s->off = read_sleb(r) * align;
		return 0;
	case DW_CFA_def_cfa_expression:
		s->known = false;
		skip_block(r);
		return 0;
	case DW_CFA_GNU_args_size:
		read_uleb(r);
		return 0;
	case CFA_NEGATE_RA_STATE:
		return m->links ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static int run(struct running *f, const uint8_t *p, const uint8_t *end)
{
	struct rules saved[SAVED_MAX];
	struct reading r = { p, end, false };
	unsigned int nsaved = 0;
	int e = 0;

	while (!e && !r.bad && r.p < r.end)
		e = run_one(f, &r, saved, &nsaved);
	return r.bad ? -EINVAL : e;
}

/* --- the section ----------------------------------------------------------------------------------------- */

struct section {
	const uint8_t *ident;		/* of the file */
	Elf_Data *data;
	uint64_t addr;
	struct origin origin;		/* of the last function: most functions share one */
};

/* Read the CIE at @off. */
static void read_origin(struct section *s, Dwarf_Off off)
{
	struct origin *o = &s->origin;
	struct running f = { .from = o };
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;
	const char *aug;

	*o = (struct origin){ .machine = o->machine, .off = off };
	if (libdw.next_cfi(s->ident, s->data, true, off, &next, &entry) || !dwarf_cfi_cie_p(&entry))
		return;
	aug = entry.cie.augmentation;
	/* Addresses must be relative and of 4 bytes, as compilers write them.  Augmentation data has a size. */
	if (aug[0] != 'z' || entry.cie.return_address_register != o->machine->ra)
		return;
	o->has_size = true;
	for (size_t i = 1, at = 0; aug[i]; i++) {
		uint8_t enc = at < entry.cie.augmentation_data_size ? entry.cie.augmentation_data[at] : 0;

		if (aug[i] == 'R' && enc != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
			return;
		if (aug[i] == 'P')	/* an encoding, and an address in that encoding */
			at += (enc & 7) == DW_EH_PE_absptr || (enc & 7) == DW_EH_PE_udata8 ? 8 :
			      (enc & 7) == DW_EH_PE_udata2 ? 2 : 4;
		at += aug[i] == 'R' || aug[i] == 'P' || aug[i] == 'L';
	}
	o->code_align = entry.cie.code_alignment_factor;
	o->data_align = (int64_t)entry.cie.data_alignment_factor;
	f.now.rbp_known = f.now.ra_known = true;
	o->usable = !run(&f, entry.cie.initial_instructions, entry.cie.initial_instructions_end);
	o->rules = f.now;
}

/* Add the rows of the function that starts at @addr and whose FDE is at @off. */
static int add_function(struct making *m, struct section *s, Dwarf_Off off, uint64_t addr)
{
	struct abi_unwind_row unknown = { 0 };
	struct running f = { .m = m, .from = &s->origin, .addr = addr };
	Dwarf_CFI_Entry entry;
	struct reading r;
	uint64_t size;
	Dwarf_Off next;
	int e;

	if (libdw.next_cfi(s->ident, s->data, true, off, &next, &entry) || dwarf_cfi_cie_p(&entry))
		return 0;
	if (s->origin.off != entry.fde.CIE_pointer || !s->origin.code_align)
		read_origin(s, entry.fde.CIE_pointer);
	if (!s->origin.usable)
		return 0;
	r = (struct reading){ entry.fde.start, entry.fde.end, false };
	read_fixed(&r, 4);
	size = read_fixed(&r, 4);
	skip_block(&r);
	if (r.bad || size > INT32_MAX)
		return 0;
	f.now = s->origin.rules;
	e = run(&f, r.p, r.end);
	if (e == -EINVAL)
		return add(m, f.addr > addr ? f.addr : addr, unknown);
	if (!e && f.addr < addr + size)
		e = add(m, f.addr, row_of(s->origin.machine, &f.now));
	return e ? e : add(m, addr + size, unknown);
}

/*
 * The table of .eh_frame_hdr (Linux Standard Base Core, 10.6.2), in the form that all linkers write: pairs of a
 * function's start and its FDE, each of 4 bytes and relative to the table.
 */
int obj_frames(const struct obj *o, uint64_t *addr, int32_t **ret, uint32_t *n)
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

int obj_unwind(struct obj *o, int (*page)(void *ctx, uint32_t number, const struct abi_unwind_row *rows, uint32_t n), void *ctx)
{
	struct making m = { .page = page, .ctx = ctx };
	struct section s = { 0 };
	uint64_t base = 0, last = 0;
	int32_t *starts = NULL;
	uint32_t n = 0;
	GElf_Shdr shdr;
	Elf_Scn *scn;
	int e;

	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++)
		if (machines[i].e_machine == o->info.machine)
			s.origin.machine = &machines[i];
	if (!s.origin.machine || !libdw_is_there())
		return -ENOTSUP;
	scn = obj_section(o->elf, ".eh_frame", &shdr);
	s.ident = (const uint8_t *)elf_getident(o->elf, NULL);
	s.data = scn && shdr.sh_type != SHT_NOBITS ? elf_rawdata(scn, NULL) : NULL;
	if (!s.data)
		obj_memory();
	if (!s.data || !s.ident)
		return -ENOENT;
	s.addr = shdr.sh_addr;
	e = obj_frames(o, &base, &starts, &n);
	for (uint32_t i = 0; i < n && !e; i++) {
		uint64_t addr = base + (uint64_t)(int64_t)starts[2 * i];
		uint64_t fde = base + (uint64_t)(int64_t)starts[2 * i + 1] - s.addr;

		if (addr < last || addr >> ABI_UNWIND_SHIFT > UINT32_MAX || fde >= s.data->d_size)
			continue;
		last = addr;
		e = add_function(&m, &s, fde, addr);
	}
	if (!e && m.begun)
		e = flush(&m);
	free(starts);
	return e;
}
