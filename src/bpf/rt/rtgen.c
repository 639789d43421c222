/*
 * rtgen OUT.c OBJECT...: from the runtime library's objects, compiled for eBPF, to C tables (bpf/rt.h).
 *
 * A function is stored with its calls, also of other objects' functions, and with the addresses of functions that it
 * passes to bpf_loop.  Data of any kind is refused: the functions must not have any.  Runs when dtap is built.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>

#ifndef EM_BPF
#define EM_BPF 247
#endif

enum { MAX_FUNCS = 256, MAX_REFS = 64 };

/* The functions of rt.def come first, in its order. */
static const char *const listed[] = {
#define RT_FN(NAME, SYMBOL, PARAMS, WHAT) #SYMBOL,
#include "rt.def"
#undef RT_FN
};

enum { NLISTED = sizeof(listed) / sizeof(listed[0]) };

struct ref {
	uint32_t insn;
	unsigned int fn;
};

struct func {
	char *name;
	struct bpf_insn *insns;
	size_t n;
	struct ref refs[MAX_REFS];
	unsigned int nrefs;
	/* where it was */
	unsigned int object;
	size_t section;
	uint64_t off;
};

struct object {
	const char *path;
	unsigned int number;
	Elf *elf;
	int fd;
	Elf_Data *syms;
	GElf_Shdr symtab;
	size_t nsyms;
};

struct library {
	struct func funcs[MAX_FUNCS];
	unsigned int n;
};

static void die(const char *path, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "rtgen: %s: ", path);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static struct func *find_at(struct library *lib, const struct object *o, size_t section, uint64_t off)
{
	for (unsigned int k = 0; k < lib->n; k++) {
		struct func *f = &lib->funcs[k];

		if (f->insns && f->object == o->number && f->section == section && f->off == off)
			return f;
	}
	die(o->path, "no function at offset %llu of section %zu", (unsigned long long)off, section);
	return NULL;
}

static struct func *find_named(struct library *lib, const struct object *o, const char *name)
{
	for (unsigned int k = 0; k < lib->n; k++) {
		if (lib->funcs[k].insns && !strcmp(lib->funcs[k].name, name))
			return &lib->funcs[k];
	}
	die(o->path, "no function %s", name);
	return NULL;
}

static void add_func(struct library *lib, const struct object *o, const GElf_Sym *sym, const char *name)
{
	Elf_Scn *scn = elf_getscn(o->elf, sym->st_shndx);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	struct func *f = NULL;

	if (!data || sym->st_value > data->d_size || sym->st_size > data->d_size - sym->st_value)
		die(o->path, "%s lies outside its section", name);
	for (unsigned int k = 0; k < NLISTED; k++) {
		if (!strcmp(listed[k], name))
			f = &lib->funcs[k];
	}
	if (!f) {
		if (lib->n == MAX_FUNCS)
			die(o->path, "too many functions");
		f = &lib->funcs[lib->n++];
	}
	if (f->insns)
		die(o->path, "%s is there twice", name);
	f->name = strdup(name);
	f->n = sym->st_size / sizeof(*f->insns);
	f->insns = malloc(sym->st_size + 1);
	if (!f->name || !f->insns)
		die(o->path, "out of memory");
	memcpy(f->insns, (const char *)data->d_buf + sym->st_value, sym->st_size);
	f->object = o->number;
	f->section = sym->st_shndx;
	f->off = sym->st_value;
}

static void add_ref(const struct object *o, struct func *f, uint32_t insn, const struct func *to,
		    const struct library *lib)
{
	if (f->nrefs == MAX_REFS)
		die(o->path, "%s calls too much", f->name);
	f->refs[f->nrefs++] = (struct ref){ insn, (unsigned int)(to - lib->funcs) };
}

/* The function that contains byte @off of @section. */
static struct func *containing(struct library *lib, const struct object *o, size_t section, uint64_t off)
{
	for (unsigned int k = 0; k < lib->n; k++) {
		struct func *f = &lib->funcs[k];

		if (f->insns && f->object == o->number && f->section == section && f->off <= off &&
		    off < f->off + f->n * sizeof(*f->insns))
			return f;
	}
	return NULL;
}

static void read_reloc(struct library *lib, const struct object *o, size_t section, const GElf_Rel *rel)
{
	struct func *f = containing(lib, o, section, rel->r_offset);
	struct bpf_insn *insn;
	uint32_t at;
	int64_t addend;
	GElf_Sym sym;

	if (!f || !gelf_getsym(o->syms, (int)GELF_R_SYM(rel->r_info), &sym))
		die(o->path, "a relocation outside of all functions");
	at = (uint32_t)((rel->r_offset - f->off) / sizeof(*insn));
	insn = &f->insns[at];
	if (insn->code == (BPF_JMP | BPF_CALL)) {
		addend = ((int64_t)insn->imm + 1) * (int64_t)sizeof(*insn);
		insn->src_reg = BPF_PSEUDO_CALL;
	} else if (insn->code == (BPF_LD | BPF_IMM | BPF_DW)) {
		addend = insn->imm;
		insn->src_reg = BPF_PSEUDO_FUNC;
		insn[1].imm = 0;
	} else {
		die(o->path, "%s: a relocation of an instruction that is no call", f->name);
		return;
	}
	if (sym.st_shndx == SHN_UNDEF)
		add_ref(o, f, at, find_named(lib, o, elf_strptr(o->elf, o->symtab.sh_link, sym.st_name)), lib);
	else if (GELF_ST_TYPE(sym.st_info) == STT_SECTION)
		add_ref(o, f, at, find_at(lib, o, sym.st_shndx, (uint64_t)addend), lib);
	else
		add_ref(o, f, at, find_at(lib, o, sym.st_shndx, sym.st_value), lib);
}

/* Calls within a section need no relocation. */
static void read_calls(struct library *lib, const struct object *o, struct func *f)
{
	for (uint32_t k = 0; k < f->n; k++) {
		const struct bpf_insn *i = &f->insns[k];
		bool known = false;

		if (i->code != (BPF_JMP | BPF_CALL) || i->src_reg != BPF_PSEUDO_CALL)
			continue;
		for (unsigned int r = 0; r < f->nrefs; r++)
			known |= f->refs[r].insn == k;
		if (!known)
			add_ref(o, f, k,
				find_at(lib, o, f->section,
					f->off + (uint64_t)((int64_t)(k + 1 + i->imm) * (int64_t)sizeof(*i))),
				lib);
	}
}

static void find_symbols(struct object *o)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(o->elf, scn))) {
		if (gelf_getshdr(scn, &o->symtab) && o->symtab.sh_type == SHT_SYMTAB) {
			o->syms = elf_getdata(scn, NULL);
			o->nsyms = o->symtab.sh_size / o->symtab.sh_entsize;
			return;
		}
	}
	die(o->path, "no symbols");
}

static void open_object(struct object *o, const char *path, unsigned int number)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	GElf_Ehdr ehdr;

	*o = (struct object){ .path = path, .number = number, .fd = fd };
	if (fd < 0)
		die(path, "%s", strerror(errno));
	o->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!o->elf || !gelf_getehdr(o->elf, &ehdr) || ehdr.e_machine != EM_BPF)
		die(path, "no eBPF object");
	find_symbols(o);
}

static void close_object(struct object *o)
{
	elf_end(o->elf);
	close(o->fd);
}

static void read_functions(struct library *lib, const char *path, unsigned int number)
{
	struct object o;

	open_object(&o, path, number);
	for (size_t k = 0; k < o.nsyms; k++) {
		GElf_Sym sym;

		if (gelf_getsym(o.syms, (int)k, &sym) && GELF_ST_TYPE(sym.st_info) == STT_FUNC && sym.st_size)
			add_func(lib, &o, &sym, elf_strptr(o.elf, o.symtab.sh_link, sym.st_name));
	}
	close_object(&o);
}

/* What the functions refer to, when all functions are known. */
static void read_references(struct library *lib, const char *path, unsigned int number)
{
	Elf_Scn *scn = NULL;
	struct object o;
	GElf_Shdr sh;

	open_object(&o, path, number);
	while ((scn = elf_nextscn(o.elf, scn))) {
		Elf_Data *data = elf_getdata(scn, NULL);
		GElf_Rel rel;

		if (!gelf_getshdr(scn, &sh))
			die(path, "%s", elf_errmsg(-1));
		if ((sh.sh_flags & SHF_ALLOC) && !(sh.sh_flags & SHF_EXECINSTR) && sh.sh_size)
			die(path, "the runtime library must not have data");
		if (sh.sh_type != SHT_REL)
			continue;
		for (size_t k = 0; k < sh.sh_size / sh.sh_entsize; k++) {
			if (!gelf_getrel(data, (int)k, &rel))
				die(path, "%s", elf_errmsg(-1));
			read_reloc(lib, &o, sh.sh_info, &rel);
		}
	}
	for (unsigned int k = 0; k < lib->n; k++) {
		if (lib->funcs[k].insns && lib->funcs[k].object == number)
			read_calls(lib, &o, &lib->funcs[k]);
	}
	close_object(&o);
}

/* --- writing ----------------------------------------------------------------------------------------- */

static void write_func(FILE *out, const struct func *f, unsigned int number)
{
	fprintf(out, "/* %s */\nstatic const struct bpf_insn insns_%u[] = {\n", f->name, number);
	for (size_t k = 0; k < f->n; k++) {
		const struct bpf_insn *i = &f->insns[k];

		fprintf(out, "\t{ .code = 0x%02x, .dst_reg = %u, .src_reg = %u, .off = %d, .imm = %d },\n", i->code,
			i->dst_reg, i->src_reg, i->off, i->imm);
	}
	fprintf(out, "};\n");
	if (!f->nrefs)
		return;
	fprintf(out, "static const struct rt_ref refs_%u[] = {", number);
	for (unsigned int k = 0; k < f->nrefs; k++)
		fprintf(out, " { %u, %u },", f->refs[k].insn, f->refs[k].fn);
	fprintf(out, " };\n");
}

static void write_table(FILE *out, const struct library *lib)
{
	fprintf(out, "/* Made by rtgen from src/bpf/rt. */\n#include \"bpf/rt.h\"\n\n");
	for (unsigned int k = 0; k < lib->n; k++)
		write_func(out, &lib->funcs[k], k);
	fprintf(out, "\nconst struct rt_func rt_funcs[] = {\n");
	for (unsigned int k = 0; k < lib->n; k++) {
		const struct func *f = &lib->funcs[k];

		fprintf(out, "\t{ \"%s\", insns_%u, %zu, ", f->name, k, f->n);
		if (f->nrefs)
			fprintf(out, "refs_%u, %u },\n", k, f->nrefs);
		else
			fprintf(out, "0, 0 },\n");
	}
	fprintf(out, "};\nconst uint32_t rt_nfuncs = %u;\n", lib->n);
}

int main(int argc, char **argv)
{
	static struct library lib;
	FILE *out;

	if (argc < 3) {
		fprintf(stderr, "usage: rtgen OUT.c OBJECT...\n");
		return 2;
	}
	elf_version(EV_CURRENT);
	lib.n = NLISTED;
	for (int k = 2; k < argc; k++)
		read_functions(&lib, argv[k], (unsigned int)k);
	for (int k = 2; k < argc; k++)
		read_references(&lib, argv[k], (unsigned int)k);
	for (unsigned int k = 0; k < NLISTED; k++) {
		if (!lib.funcs[k].insns)
			die(listed[k], "in rt.def, but in no object");
	}
	out = fopen(argv[1], "w");
	if (!out)
		die(argv[1], "%s", strerror(errno));
	write_table(out, &lib);
	if (fclose(out))
		die(argv[1], "%s", strerror(errno));
	return 0;
}
