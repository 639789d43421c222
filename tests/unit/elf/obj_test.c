/*
 * ELF files, sound and damaged.  The sound one is the program of marked.c; the damaged ones are made of it
 * byte by byte in memory, so that each test shows what is wrong with its file.
 */
#include <elf.h>
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "elf/obj.h"
#include "elf/priv.h"

struct image {
	char *data;
	size_t len;
};

static struct image image_of(const char *path)
{
	struct image im = { 0 };
	struct stat st;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	im.len = (size_t)st.st_size;
	im.data = malloc(im.len);
	assert_int_equal(fread(im.data, 1, im.len, f), im.len);
	fclose(f);
	return im;
}

static int image_open(const struct image *im, struct obj **o, struct strbuf *why)
{
	int fd = memfd_create("image", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, im->data, im->len), im->len);
	return obj_open_fd(fd, "image", o, why);
}

static Elf64_Shdr *image_section(const struct image *im, const char *name)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)im->data;
	Elf64_Shdr *sh = (Elf64_Shdr *)(im->data + eh->e_shoff);
	const char *names = im->data + sh[eh->e_shstrndx].sh_offset;

	for (int i = 0; i < eh->e_shnum; i++)
		if (!strcmp(names + sh[i].sh_name, name))
			return &sh[i];
	fail_msg("no section %s", name);
	return NULL;
}

/* --- exported symbols ----------------------------------------------------------------------------------- */

/* Is the answer for @name the one of a search of all symbols? */
static void same_answer(struct obj *o, const char *name)
{
	uint64_t found = 1, searched = 1;

	assert_int_equal(obj_exports(o, name, &found), obj_exports_searched(o, name, &searched));
	if (found != searched)
		fail_msg("%s: %lx instead of %lx", name, (unsigned long)found, (unsigned long)searched);
}

/* Each name of a library, and what differs from it in a letter, is longer or shorter. */
static void each_name(struct obj *o, const struct image *im)
{
	const Elf64_Shdr *syms = image_section(im, ".dynsym"), *names = image_section(im, ".dynstr");
	char name[512];

	for (size_t i = 0; i < syms->sh_size / sizeof(Elf64_Sym); i++) {
		const Elf64_Sym *sym = (const Elf64_Sym *)(im->data + syms->sh_offset) + i;
		size_t len;

		snprintf(name, sizeof(name) - 2, "%s", im->data + names->sh_offset + sym->st_name);
		len = strlen(name);
		same_answer(o, name);
		if (i % 16 || !len)
			continue;
		name[i % len] ^= 1;
		same_answer(o, name);
		name[i % len] ^= 1;
		strcpy(name + len, "x");
		same_answer(o, name);
		name[len - 1] = 0;
		same_answer(o, name);
	}
}

static void exports_are_found(void **state)
{
	void *const in[] = { (void *)(uintptr_t)strlen, (void *)(uintptr_t)elf_begin, (void *)(uintptr_t)dlopen };
	char long_name[1000];
	struct image im;
	struct obj *o;
	Dl_info info;

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = 0;
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		assert_true(dladdr(in[i], &info));
		im = image_of(info.dli_fname);
		assert_int_equal(obj_open(info.dli_fname, &o, NULL), 0);
		each_name(o, &im);
		same_answer(o, "");
		same_answer(o, long_name);
		obj_close(o);
		/* The same without the table. */
		image_section(&im, ".gnu.hash")->sh_type = SHT_NULL;
		assert_int_equal(image_open(&im, &o, NULL), 0);
		same_answer(o, "strlen");
		same_answer(o, "elf_begin");
		obj_close(o);
		free(im.data);
	}
}

/* Whatever the table says: an answer, and one of the symbol's own. */
static void damaged_table(void **state)
{
	static const uint32_t values[] = { 0, 1, 2, 63, 0x7fffffff, 0x80000000, UINT32_MAX };
	Dl_info info;
	struct image im;
	Elf64_Shdr *hash;
	uint32_t *words;
	size_t n;

	(void)state;
	assert_true(dladdr((void *)(uintptr_t)elf_begin, &info));
	im = image_of(info.dli_fname);
	hash = image_section(&im, ".gnu.hash");
	words = (uint32_t *)(im.data + hash->sh_offset);
	n = hash->sh_size / 4;
	for (size_t i = 0; i < n * 7; i++) {
		uint32_t *word = &words[i / 7 < 4 ? i / 7 : i / 7 * 997 % n], was = *word;
		uint64_t found, searched;
		struct obj *o;

		if (i / 7 >= 200)
			break;
		*word = values[i % 7];
		assert_int_equal(image_open(&im, &o, NULL), 0);
		if (obj_exports(o, "elf_begin", &found)) {
			assert_true(obj_exports_searched(o, "elf_begin", &searched));
			assert_int_equal(found, searched);
		}
		obj_close(o);
		*word = was;
	}
	hash->sh_offset = (uint64_t)-8;
	for (int k = 0; k < 2; k++) {
		uint64_t addr;
		struct obj *o;

		assert_int_equal(image_open(&im, &o, NULL), 0);
		assert_true(obj_exports(o, "elf_begin", &addr));
		obj_close(o);
		hash->sh_size = k ? UINT64_MAX : 4;
	}
	free(im.data);
}

#ifdef MARKED

static struct image image_read(void)
{
	return image_of(MARKED);
}

static void sound(void **state)
{
	static const char *const execs[] = { "execve", "execvp", NULL }, *const rw[] = { "nope", "write", NULL };
	const struct obj_marker *m;
	const struct obj_info *info;
	struct arch_operand ops[2];
	uint64_t off, global;
	struct obj *o;
	size_t n;

	(void)state;
	assert_int_equal(obj_open(MARKED, &o, NULL), 0);
	info = obj_info(o);
	assert_int_equal(info->machine, EM_X86_64);
	assert_int_equal(info->elf_class, ELFCLASS64);
	assert_non_null(info->interp);
	assert_false(info->is_static);
	assert_int_equal(info->is_pie, info->type == ET_DYN);
	assert_int_equal(obj_links(o)->nneeded, 1);
	assert_string_equal(obj_links(o)->needed[0], "libc.so.6");
	assert_true(info->entry);
	assert_false(obj_imports(o, execs));
	assert_true(obj_imports(o, rw));

	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_string_equal(m[0].prov, "marked");
	assert_string_equal(m[0].name, "one");
	assert_string_equal(m[2].name, "one");
	assert_true(m[0].sem_off && m[0].sem_off == m[2].sem_off);
	assert_true(m[3].sem_off == m[0].sem_off + 2);
	assert_int_equal(m[1].sem_off, 0);
	assert_string_equal(obj_func_at(o, m[0].addr, &off), "marked_first");
	assert_true(off < 16);
	assert_string_equal(obj_func_at(o, m[3].addr, NULL), "marked_second");
	assert_null(obj_func_at(o, 1, NULL));
	assert_null(obj_func_at(o, UINT64_MAX, NULL));

	assert_int_equal(obj_operands(o, &m[0], ops, 2), 2);
	assert_int_equal(ops[0].value, -5);
	assert_true(obj_symbol(o, "marked_global", 13, &global));
	assert_false(obj_symbol(o, "marked_globa", 12, &off));
	assert_int_equal(obj_operands(o, &m[3], ops, 2), 1);
	assert_null(ops[0].why);
	assert_int_equal(ops[0].reg->kind, ARCH_REG_PC);
	assert_int_equal(ops[0].value + (int64_t)m[3].addr, global + 4);
	obj_close(o);
}

/* As dlsym finds them in the C library of this process. */
static void exported_functions(void **state)
{
	const char *const names[] = { "dlsym", "swab", "syscall", "close" };
	struct obj *o;
	uint64_t addr;
	Dl_info info;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *at = dlsym(RTLD_DEFAULT, names[i]);

		assert_true(dladdr(at, &info));
		assert_int_equal(obj_open(info.dli_fname, &o, NULL), 0);
		assert_true(obj_exports(o, names[i], &addr));
		assert_int_equal(addr, (uintptr_t)at - (uintptr_t)info.dli_fbase);
		assert_false(obj_exports(o, "swa", &addr));
		obj_close(o);
	}
	assert_int_equal(obj_open(MARKED, &o, NULL), 0);
	assert_false(obj_exports(o, "marked_global", &addr));	/* in .symtab only */
	assert_false(obj_exports(o, "puts", &addr));
	obj_close(o);
}

/* Of a file's functions, the ends of each: the first searches, before they are sorted, find what the later ones do. */
static void compare_searches(const char *path)
{
	struct obj *sorted, *fresh = NULL;
	struct obj_func f, one, other;
	unsigned int searches = 0;

	assert_int_equal(obj_open(path, &sorted, NULL), 0);
	for (size_t i = 0; obj_func(sorted, i, &f); i += 1 + i % 3) {
		const uint64_t addrs[] = { f.addr - 1, f.addr, f.addr + 1, f.end - 1, f.end };

		for (size_t k = 0; k < sizeof(addrs) / sizeof(addrs[0]); k++) {
			bool found;

			if (searches++ % 20 == 0) {
				obj_close(fresh);
				assert_int_equal(obj_open(path, &fresh, NULL), 0);
			}
			found = obj_func_find(sorted, addrs[k], &one);
			assert_int_equal(obj_func_find(fresh, addrs[k], &other), found);
			if (!found)
				continue;
			assert_string_equal(one.name, other.name);
			assert_int_equal(one.addr, other.addr);
		}
	}
	assert_true(searches > 100);
	obj_close(fresh);
	obj_close(sorted);
}

static void searches_agree(void **state)
{
	Dl_info info;

	(void)state;
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "close"), &info));
	compare_searches(info.dli_fname);
	compare_searches("/proc/self/exe");
}

/* Stripped of .symtab, what is left are exported functions, of which marked.c has none. */
static void stripped(void **state)
{
	struct image im = image_read();
	const struct obj_marker *m;
	struct arch_operand op;
	struct obj *o;
	size_t n;

	(void)state;
	image_section(&im, ".symtab")->sh_type = SHT_NULL;
	assert_int_equal(image_open(&im, &o, NULL), 0);
	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	assert_null(obj_func_at(o, m[0].addr, NULL));
	assert_int_equal(obj_operands(o, &m[3], &op, 1), 1);
	assert_non_null(op.why);
	obj_close(o);
	free(im.data);
}

/* .gnu_debugdata of a stripped file brings the functions back. */
static void debugdata(void **state)
{
	const struct obj_marker *m;
	char dir[] = "/tmp/dtap-elf-XXXXXX";
	struct strbuf cmd = { 0 }, path = { 0 };
	struct obj *o;
	size_t n;

	(void)state;
	assert_non_null(mkdtemp(dir));
	strbuf_printf(&cmd, "cd %s && cp %s full && objcopy --strip-debug full mini && xz mini && "
		      "strip -o small full && objcopy --add-section .gnu_debugdata=mini.xz small", dir, MARKED);
	strbuf_printf(&path, "%s/small", dir);
	if (system(strbuf_str(&cmd))) {
		print_message("needs binutils and xz\n");
		strbuf_fini(&cmd);
		strbuf_fini(&path);
		skip();
	}
	assert_int_equal(obj_open(strbuf_str(&path), &o, NULL), 0);
	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_string_equal(obj_func_at(o, m[0].addr, NULL), "marked_first");
	assert_string_equal(obj_func_at(o, m[2].addr, NULL), "marked_second");
	obj_close(o);
	strbuf_clear(&cmd);
	strbuf_printf(&cmd, "rm -r %s", dir);
	assert_int_equal(system(strbuf_str(&cmd)), 0);
	strbuf_fini(&cmd);
	strbuf_fini(&path);
}

/* prelink moved the text and .stapsdt.base by 0x1000, and left the notes. */
static void prelinked(void **state)
{
	struct image im = image_read();
	const struct obj_marker *m, *m0;
	struct obj *o, *o0;
	size_t n;
	Elf64_Ehdr *eh = (Elf64_Ehdr *)im.data;
	Elf64_Phdr *ph = (Elf64_Phdr *)(im.data + eh->e_phoff);

	(void)state;
	for (int i = 0; i < eh->e_phnum; i++)
		ph[i].p_vaddr += 0x1000;
	image_section(&im, ".stapsdt.base")->sh_addr += 0x1000;
	assert_int_equal(obj_open(MARKED, &o0, NULL), 0);
	assert_int_equal(image_open(&im, &o, NULL), 0);
	assert_int_equal(obj_markers(o0, &m0, &n, NULL), 0);
	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(m[i].addr, m0[i].addr + 0x1000);
		assert_int_equal(m[i].off, m0[i].off);
		assert_int_equal(m[i].sem_off, m0[i].sem_off);
	}
	obj_close(o);
	obj_close(o0);
	free(im.data);
}

/* The notes lie behind 4 GiB of a sparse file. */
static void huge(void **state)
{
	const uint64_t far = UINT64_C(5) << 30;
	struct image im = image_read();
	Elf64_Shdr *sh = image_section(&im, ".note.stapsdt");
	uint64_t off = sh->sh_offset, size = sh->sh_size;
	const struct obj_marker *m;
	int fd = memfd_create("huge", 0);
	struct obj *o;
	size_t n;

	(void)state;
	sh->sh_offset = far;
	assert_int_equal(write(fd, im.data, im.len), im.len);
	assert_int_equal(pwrite(fd, im.data + off, size, (off_t)far), size);
	memset(im.data + off, 0, size);
	assert_int_equal(obj_open_fd(fd, "huge", &o, NULL), 0);
	assert_int_equal(obj_info(o)->size, far + size);
	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_string_equal(m[3].name, "gc__start");
	obj_close(o);
	free(im.data);
}

/* Does opening @im and reading its markers fail, with @text in the reason? */
static void refused(const struct image *im, const char *text)
{
	const struct obj_marker *m;
	struct strbuf why = { 0 };
	struct obj *o = NULL;
	size_t n;
	int err = image_open(im, &o, &why);

	if (!err)
		err = obj_markers(o, &m, &n, &why);
	if (err != -ENOEXEC || !strstr(strbuf_str(&why), text) || strncmp(strbuf_str(&why), "image: ", 7))
		fail_msg("%d, '%s' instead of '%s'", err, strbuf_str(&why), text);
	obj_close(o);
	strbuf_fini(&why);
}

static void damaged(void **state)
{
	struct image im = image_read(), cut;
	Elf64_Shdr *sh = image_section(&im, ".note.stapsdt");
	char *note = im.data + sh->sh_offset;
	uint64_t size = sh->sh_size, off = sh->sh_offset;
	uint32_t namesz, descsz;
	char save[256];

	(void)state;
	memcpy(save, note, sizeof(save));
	memcpy(&namesz, note, 4);
	memcpy(&descsz, note + 4, 4);

	sh->sh_size -= 4;
	refused(&im, "notes: truncated note at offset 0x");
	sh->sh_size = size;
	sh->sh_offset = im.len;
	refused(&im, "outside of the file");
	sh->sh_offset = off;
	memcpy(note + 4, "\xff\xff\xff\x7f", 4);
	refused(&im, "notes: truncated note at offset 0x0");
	memcpy(note + 4, "\x10\0\0\0", 4);
	refused(&im, "too short for its addresses at offset 0x0");
	memcpy(note, save, sizeof(save));
	memset(note + 12 + namesz + 24, 'a', descsz - 24);
	refused(&im, "a string without an end at offset 0x0");
	memcpy(note, save, sizeof(save));
	note[12 + namesz + 24] = '\0';
	refused(&im, "without a name");
	memcpy(note, save, sizeof(save));
	memset(note + 12 + namesz, 0xff, 8);
	refused(&im, "of marker marked:one is in no executable part");
	memcpy(note, save, sizeof(save));
	memset(note + 12 + namesz + 16, 0x7f, 8);
	refused(&im, "semaphore 0x7f7f7f7f7f7f7f7f of marker marked:one is in no page of the file");
	memcpy(note, save, sizeof(save));

	/* Cut anywhere: an error or the markers, never a crash. */
	for (cut = im; cut.len > 0; cut.len -= cut.len > 97 ? 97 : cut.len) {
		const struct obj_marker *m;
		struct strbuf why = { 0 };
		struct obj *o;
		size_t n;

		if (image_open(&cut, &o, &why)) {
			assert_true(why.len > 0);
		} else {
			obj_markers(o, &m, &n, &why);
			obj_func_at(o, 0x1000, NULL);
			obj_close(o);
		}
		strbuf_fini(&why);
	}
	im.data[0] = 'x';
	refused(&im, "not an ELF file");
	free(im.data);
}

/* Notes of DTrace for Linux: types, arguments in the provider's order, the function's name; and a semaphore in .bss. */
static void usdt(void **state)
{
	const struct obj_marker *m;
	struct arch_operand ops[3];
	struct obj *o;
	size_t n;

	(void)state;
	assert_int_equal(obj_open(MARKED_USDT, &o, NULL), 0);
	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	assert_int_equal(n, 3);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(m[i].name, "place")) {
			assert_string_equal(m[i].prov, "turned");
			assert_string_equal(m[i].func, "work");
			assert_int_equal(m[i].ntyped, 3);
			assert_string_equal(m[i].typed[0].type, "char *");
			assert_string_equal(m[i].typed[2].native, "int");
			assert_int_equal(obj_operands(o, &m[i], ops, 3), 3);
			assert_int_equal(ops[0].size, 8);
			assert_int_equal(ops[1].size, 4);
			assert_ptr_equal(ops[1].reg, ops[2].reg);
		} else if (!strcmp(m[i].name, "plain")) {
			assert_int_equal(obj_operands(o, &m[i], ops, 3), 0);
		} else {
			assert_string_equal(m[i].name, "bss");
			assert_true(m[i].sem_off);
			assert_null(m[i].func);
		}
	}
	obj_close(o);
}

/* Any byte of the notes may be anything: an error or markers, never a crash. */
static void usdt_damaged(void **state)
{
	static const unsigned char values[] = { 0, 1, 0x7f, 0xff };
	struct image im = image_of(MARKED_USDT);
	Elf64_Shdr *sh = image_section(&im, ".note.usdt");
	unsigned int refusals = 0;

	(void)state;
	for (size_t i = 0; i < sh->sh_size * sizeof(values); i++) {
		char *byte = im.data + sh->sh_offset + i / sizeof(values), save = *byte;
		const struct obj_marker *m;
		struct arch_operand ops[4];
		struct strbuf why = { 0 };
		struct obj *o;
		size_t n = 0;

		*byte = (char)values[i % sizeof(values)];
		assert_int_equal(image_open(&im, &o, &why), 0);
		if (obj_markers(o, &m, &n, &why)) {
			refusals++;
			assert_non_null(strstr(strbuf_str(&why), "image: notes: "));
		} else {
			for (size_t k = 0; k < n; k++)
				obj_operands(o, &m[k], ops, 4);
		}
		obj_close(o);
		strbuf_fini(&why);
		*byte = save;
	}
	assert_true(refusals > 100);
	free(im.data);
}

#endif

/* A 32-bit program is read; its operands have no machine here. */
static void class32(void **state)
{
	const struct obj_marker *m;
	struct arch_operand op;
	struct obj *o;
	size_t n;

	(void)state;
	assert_int_equal(obj_open(CORPUS "/static32", &o, NULL), 0);
	assert_int_equal(obj_info(o)->elf_class, ELFCLASS32);
	assert_int_equal(obj_info(o)->machine, EM_386);
	assert_true(obj_info(o)->is_static);
	assert_int_equal(obj_markers(o, &m, &n, NULL), 0);
	assert_int_equal(n, 4);
	assert_string_equal(m[3].name, "gc__start");
	assert_string_equal(obj_func_at(o, m[3].addr, NULL), "marked_second");
	assert_true(m[3].sem_off);
	assert_int_equal(obj_operands(o, &m[0], &op, 1), 2);
	assert_non_null(op.why);
	obj_close(o);
}

static void not_files(void **state)
{
	struct strbuf why = { 0 };
	struct obj *o;

	(void)state;
	assert_int_equal(obj_open("/nonexistent/file", &o, &why), -ENOENT);
	assert_string_equal(strbuf_str(&why), "/nonexistent/file: No such file or directory");
	strbuf_clear(&why);
	assert_int_equal(obj_open("/", &o, &why), -ENOTSUP);
	assert_string_equal(strbuf_str(&why), "/: not a regular file, but a folder");
	strbuf_clear(&why);
	assert_int_equal(obj_open("/etc/passwd", &o, &why), -ENOEXEC);
	assert_string_equal(strbuf_str(&why), "/etc/passwd: not an ELF file");
	assert_int_equal(obj_open("/etc/passwd", &o, NULL), -ENOEXEC);
	obj_close(NULL);
	strbuf_fini(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(not_files),
		cmocka_unit_test(class32),
		cmocka_unit_test(exports_are_found),
		cmocka_unit_test(damaged_table),
#ifdef MARKED
		cmocka_unit_test(sound),
		cmocka_unit_test(exported_functions),
		cmocka_unit_test(searches_agree),
		cmocka_unit_test(stripped),
		cmocka_unit_test(debugdata),
		cmocka_unit_test(prelinked),
		cmocka_unit_test(damaged),
		cmocka_unit_test(usdt),
		cmocka_unit_test(usdt_damaged),
		cmocka_unit_test(huge),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
