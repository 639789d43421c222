/*
 * Thread-local variables: where a thread has a file's block of them.
 *
 * A program's block has a fixed distance from the thread pointer.  That of a library is known in the process alone: a
 * place in the library that the dynamic loader fills says its distance (R_X86_64_TPOFF64), or the library's number in
 * the thread's table of blocks (R_X86_64_DTPMOD64), whose address is behind the thread pointer.
 *
 * Ulrich Drepper, "ELF Handling For Thread-Local Storage", 3.4.2 and 3.4.6 (variant 2, x86-64), 3 (variant 1).
 */
#include "elf/priv.h"

#include <string.h>

enum { HEAD_AARCH64 = 16 };	/* bytes between the thread pointer and a program's block */

static bool find_segment(struct obj *o, GElf_Phdr *ret)
{
	size_t n = 0;

	if (elf_getphdrnum(o->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(o->elf, (int)i, ret) && ret->p_type == PT_TLS)
			return true;
	return false;
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return to > 1 ? (n + to - 1) / to * to : n;
}

static bool of_program(const struct obj *o, const GElf_Phdr *tls, struct obj_tls *ret)
{
	if (tls->p_memsz > INT32_MAX || tls->p_align > INT32_MAX)
		return false;
	ret->kind = OBJ_TLS_FIXED;
	if (o->info.machine == EM_X86_64)
		ret->off = -(int64_t)round_up(tls->p_memsz, tls->p_align);
	else if (o->info.machine == EM_AARCH64)
		ret->off = (int64_t)round_up(HEAD_AARCH64, tls->p_align);
	else
		return false;
	return true;
}

/*
 * Take what relocation @rela says about the file's own block or, if @name is not NULL, about the block of the variable of
 * that name.  True: it says where it is.
 */
static bool take(struct obj *o, const GElf_Rela *rela, Elf_Data *syms, size_t strings, const char *name, struct obj_tls *ret)
{
	size_t k = GELF_R_SYM(rela->r_info);
	const char *called;
	uint64_t value = 0;
	GElf_Sym sym;

	if (GELF_R_TYPE(rela->r_info) != R_X86_64_TPOFF64 && GELF_R_TYPE(rela->r_info) != R_X86_64_DTPMOD64)
		return false;
	if (name || k) {	/* 0: the file itself */
		if (!k || !syms || !gelf_getsym(syms, (int)k, &sym))
			return false;
		called = name ? elf_strptr(o->elf, strings, sym.st_name) : NULL;
		if (name ? !called || strcmp(called, name) : sym.st_shndx == SHN_UNDEF)
			return false;
		value = sym.st_value;
	}
	ret->slot = rela->r_offset;
	ret->kind = GELF_R_TYPE(rela->r_info) == R_X86_64_TPOFF64 ? OBJ_TLS_DISTANCE : OBJ_TLS_NUMBER;
	ret->off = ret->kind == OBJ_TLS_DISTANCE ? -(int64_t)(value + (uint64_t)rela->r_addend) : 0;
	return true;
}

static bool of_library(struct obj *o, const char *name, struct obj_tls *ret)
{
	Elf_Data *data, *syms;
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Rela rela;

	if (o->info.machine != EM_X86_64)
		return false;
	while ((scn = obj_next_section(o->elf, scn, SHT_RELA, &shdr, &data))) {
		Elf_Scn *sym_scn = elf_getscn(o->elf, shdr.sh_link);
		GElf_Shdr sym_shdr;

		syms = sym_scn && gelf_getshdr(sym_scn, &sym_shdr) ? elf_getdata(sym_scn, NULL) : NULL;
		for (int i = 0; gelf_getrela(data, i, &rela); i++)
			if (take(o, &rela, syms, syms ? sym_shdr.sh_link : 0, name, ret))
				return true;
	}
	return false;
}

bool obj_tls(struct obj *o, const char *name, struct obj_tls *ret)
{
	GElf_Phdr tls;

	memset(ret, 0, sizeof(*ret));
	if (name)
		return of_library(o, name, ret);
	if (!find_segment(o, &tls))
		return false;
	/* A library may have a loader, too: libc.so.6 can be run. */
	return (o->info.type == ET_EXEC || o->info.is_pie) && !obj_links(o)->soname ? of_program(o, &tls, ret) :
										      of_library(o, NULL, ret);
}
