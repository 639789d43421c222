/*
 * libdw, which reads DWARF: loaded with the first debug information that a script needs.
 */
#ifndef DTAP_ELF_LIBDW_H
#define DTAP_ELF_LIBDW_H

#include <elfutils/libdw.h>

#include "base/library.h"

#define LIBDW(X) \
	X(dwarf_aggregate_size, aggregate_size) X(dwarf_attr, attr) X(dwarf_attr_integrate, attr_integrate) \
	X(dwarf_begin_elf, begin_elf) X(dwarf_cfi_addrframe, cfi_addrframe) X(dwarf_cfi_end, cfi_end) \
	X(dwarf_child, child) X(dwarf_cu_die, cu_die) X(dwarf_cu_getdwarf, cu_getdwarf) X(dwarf_decl_file, decl_file) \
	X(dwarf_decl_line, decl_line) X(dwarf_diename, diename) X(dwarf_dieoffset, dieoffset) X(dwarf_end, end) \
	X(dwarf_entry_breakpoints, entry_breakpoints) X(dwarf_entrypc, entrypc) X(dwarf_filesrc, filesrc) \
	X(dwarf_formaddr, formaddr) X(dwarf_formref_die, formref_die) X(dwarf_formsdata, formsdata) \
	X(dwarf_formstring, formstring) X(dwarf_formudata, formudata) X(dwarf_frame_cfa, frame_cfa) \
	X(dwarf_get_units, get_units) X(dwarf_getcfi, getcfi) X(dwarf_getcfi_elf, getcfi_elf) \
	X(dwarf_getlocation, getlocation) X(dwarf_getlocation_addr, getlocation_addr) \
	X(dwarf_getlocation_attr, getlocation_attr) X(dwarf_getsrc_die, getsrc_die) X(dwarf_getsrcfiles, getsrcfiles) \
	X(dwarf_getsrclines, getsrclines) X(dwarf_hasattr, hasattr) X(dwarf_haspc, haspc) X(dwarf_lineaddr, lineaddr) \
	X(dwarf_linebeginstatement, linebeginstatement) X(dwarf_lineendsequence, lineendsequence) \
	X(dwarf_lineno, lineno) X(dwarf_linesrc, linesrc) X(dwarf_lowpc, lowpc) X(dwarf_next_cfi, next_cfi) \
	X(dwarf_onesrcline, onesrcline) X(dwarf_ranges, ranges) X(dwarf_siblingof, siblingof) X(dwarf_tag, tag)

LIBRARY_DECLARE(libdw, LIBDW)

#endif
