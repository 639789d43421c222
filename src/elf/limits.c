/*
 * Limits on how much of a file is read into memory, in proportion to what it takes on disk.
 *
 * libelf and libdw load whole sections, whatever sizes the headers contain.  A sparse file takes nothing on disk and
 * can have any size; a compressed section can have any size, too.  So the sizes are added up before anything is loaded.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/oom.h"
#include "elf/priv.h"

enum { SECTIONS_MAX = 1 << 18 };

#define LOAD_MIN (256ull << 20)		/* file systems may report fewer blocks than a file has, or none */
#define LOAD_MAX (2048ull << 20)
#define PACKED 8			/* a compressing file system reports fewer blocks: allow for this factor */

static uint64_t load_max(const struct file *f)
{
	uint64_t stored = (uint64_t)f->st.st_blocks * 512, max = stored > LOAD_MAX / PACKED ? LOAD_MAX : stored * PACKED;

	return max < LOAD_MIN ? LOAD_MIN : max;
}

/* Check the number of sections, for both classes and byte orders: libelf allocates a table of them on opening. */
bool limits_begin(const struct file *f)
{
	unsigned char head[EI_NIDENT];
	union { Elf64_Ehdr h64; Elf32_Ehdr h32; } h;
	union { Elf64_Shdr s64; Elf32_Shdr s32; } s;
	bool is64, swap;
	uint64_t at, n;

	if (file_pread(f->fd, head, sizeof(head), 0) != sizeof(head) || memcmp(head, ELFMAG, SELFMAG))
		return true;	/* libelf will report the error */
	is64 = head[EI_CLASS] == ELFCLASS64;
	swap = head[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
	if (file_pread(f->fd, &h, is64 ? sizeof(h.h64) : sizeof(h.h32), 0) < (ssize_t)sizeof(h.h32))
		return true;
	if (is64 ? h.h64.e_shnum : h.h32.e_shnum)
		return true;	/* 16 bits: few enough */
	at = is64 ? (swap ? __builtin_bswap64(h.h64.e_shoff) : h.h64.e_shoff) :
	     swap ? __builtin_bswap32(h.h32.e_shoff) : h.h32.e_shoff;
	if (!at || at > INT64_MAX || file_pread(f->fd, &s, is64 ? sizeof(s.s64) : sizeof(s.s32), at) < (ssize_t)sizeof(s.s32))
		return true;
	n = is64 ? (swap ? __builtin_bswap64(s.s64.sh_size) : s.s64.sh_size) :
	    swap ? __builtin_bswap32(s.s32.sh_size) : s.s32.sh_size;
	return n <= SECTIONS_MAX;
}

static bool is_debug(const char *name)
{
	return !strncmp(name, ".debug_", 7) || !strncmp(name, ".zdebug_", 8);
}

static bool is_read(const GElf_Shdr *shdr, const char *name)
{
	return shdr->sh_type != SHT_PROGBITS || !strcmp(name, ".eh_frame") || !strcmp(name, ".gnu_debugdata") ||
	       !strcmp(name, ".eh_frame_hdr");
}

bool limits_sections(Elf *elf, const struct file *f, bool debug)
{
	uint64_t left = load_max(f);
	size_t strndx = 0;
	Elf_Scn *scn;
	GElf_Shdr shdr;
	GElf_Chdr chdr;

	if (elf_getshdrstrndx(elf, &strndx)) {
		obj_memory();
		return true;	/* no section has a name then */
	}
	/* The first look at a header loads them all; that there was no memory is not what libelf's error is then. */
	scn = elf_getscn(elf, strndx);
	errno = 0;
	if (scn && (!gelf_getshdr(scn, &shdr) || shdr.sh_size > left)) {
		if (errno == ENOMEM)
			oom();
		return false;
	}
	for (scn = NULL; (scn = elf_nextscn(elf, scn));) {
		const char *name;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = obj_section_name(elf, &shdr);
		if (is_debug(name) ? !debug : debug || !is_read(&shdr, name))
			continue;
		if (shdr.sh_size > left)
			return false;
		left -= shdr.sh_size;
		if (!(shdr.sh_flags & SHF_COMPRESSED))
			continue;
		if (!gelf_getchdr(scn, &chdr) || chdr.ch_size > left)
			return false;
		left -= chdr.ch_size;
	}
	obj_memory();
	return true;
}
