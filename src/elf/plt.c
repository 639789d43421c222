/*
 * The procedure linkage table, through which a program calls the functions of its libraries.
 *
 * Its entries, 16 bytes each, are in the order of the relocations in .rela.plt: those of .plt.sec, or without that
 * section those of .plt after its first.  System V ABI, AMD64 supplement: "Procedure Linkage Table".
 */
#include "elf/obj.h"

#include <string.h>

#include "elf/priv.h"

enum { ENTRY = 16 };

void obj_each_plt(struct obj *o, void (*fn)(void *ctx, const char *name, uint64_t addr), void *ctx)
{
	size_t entry = gelf_fsize(o->elf, ELF_T_RELA, 1, EV_CURRENT), sym_size = gelf_fsize(o->elf, ELF_T_SYM, 1, EV_CURRENT);
	GElf_Shdr rel, plt, syms;
	Elf_Scn *scn = obj_section(o->elf, ".rela.plt", &rel), *sym_scn;
	Elf_Data *data, *sym_data;
	uint64_t first;

	if (o->info.machine != EM_X86_64 || !scn || rel.sh_type != SHT_RELA || !entry || !sym_size)
		return;
	if (obj_section(o->elf, ".plt.sec", &plt))
		first = plt.sh_addr;
	else if (obj_section(o->elf, ".plt", &plt))
		first = plt.sh_addr + ENTRY;
	else
		return;
	sym_scn = elf_getscn(o->elf, rel.sh_link);
	data = elf_getdata(scn, NULL);
	sym_data = sym_scn ? elf_getdata(sym_scn, NULL) : NULL;
	if (!data || !sym_data || !gelf_getshdr(sym_scn, &syms))
		return;
	for (size_t i = 0; i < data->d_size / entry && i < INT32_MAX; i++) {
		uint64_t addr = first + i * ENTRY;
		const char *name;
		GElf_Rela r;
		GElf_Sym sym;

		if (!gelf_getrela(data, (int)i, &r) || GELF_R_TYPE(r.r_info) != R_X86_64_JUMP_SLOT ||
		    GELF_R_SYM(r.r_info) >= sym_data->d_size / sym_size ||
		    !gelf_getsym(sym_data, (int)GELF_R_SYM(r.r_info), &sym))
			continue;
		name = elf_strptr(o->elf, syms.sh_link, sym.st_name);
		if (name && *name && addr >= plt.sh_addr && addr + ENTRY <= plt.sh_addr + plt.sh_size)
			fn(ctx, name, addr);
	}
}
