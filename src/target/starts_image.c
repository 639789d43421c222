/*
 * A new image's stack, as execve() leaves it (System V ABI, AMD64 supplement, "Initial Stack and Register State"):
 *
 *	sp ► argc, argv[] ..., NULL, envp[] ..., NULL, auxv[] ..., { AT_NULL, 0 }, strings
 *
 * The words are written anew below, with other variables, and the strings of these above them; all addresses in the words stay
 * valid.  The kernel makes 128 KiB of room below the stack pointer (setup_arg_pages()).  What the kernel shows as the process's
 * environment stays as it was.
 */
#include "target/starts_priv.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "arch/remote.h"

enum { WORDS = 8192, STRINGS = 2 * PATH_MAX + 512, OLD = 2048 };

#define PRELOAD "LD_PRELOAD="

struct image {
	uint64_t words[WORDS + 2];
	size_t n;		/* words, up to AT_NULL and its value */
	size_t env;		/* index of envp[0] */
	size_t nenv;
};

static bool read_at(pid_t pid, uint64_t at, void *to, size_t len, size_t *got)
{
	struct iovec here = { to, len }, there = { (void *)(uintptr_t)at, len };
	ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);

	*got = n < 0 ? 0 : (size_t)n;
	return n > 0;
}

/* The string at @at, as far as it fits in @to.  False: it does not, or cannot be read. */
static bool read_text(pid_t pid, uint64_t at, char *to, size_t size)
{
	size_t got, page = 4096 - at % 4096, all = 0;

	while (all < size) {
		if (!read_at(pid, at + all, to + all, page < size - all ? page : size - all, &got))
			return false;
		if (memchr(to + all, 0, got))
			return true;
		all += got;
		page = 4096;
	}
	return false;
}

/* Find the parts of the words; false if they are not as above. */
static bool divide(struct image *im, size_t have)
{
	size_t at;

	if (!have || im->words[0] >= have)
		return false;
	im->env = (size_t)im->words[0] + 2;
	if (im->env >= have || im->words[im->env - 1])
		return false;
	for (at = im->env; at < have && im->words[at]; at++)
		;
	im->nenv = at - im->env;
	for (at++; at + 1 < have && im->words[at] != AT_NULL; at += 2)
		;
	im->n = at + 2;
	return im->n <= have;
}

static bool is_variable(const char *text, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(text, name, len) && text[len] == '=';
}

/* The stack words at @sp.  *preload: index of LD_PRELOAD in them, or 0; its value in @old. */
static bool read_image(pid_t pid, uint64_t sp, struct image *im, size_t *preload, char old[OLD])
{
	char name[sizeof(PRELOAD) + 8];
	size_t got = 0, have = 0;

	/* The words may end before the stack does; the kernel copies what is there. */
	while (have < WORDS && read_at(pid, sp + 8 * have, im->words + have, 8 * (WORDS - have < 512 ? WORDS - have : 512), &got) && got >= 8)
		have += got / 8;
	*preload = 0;
	*old = 0;
	if (!divide(im, have))
		return false;
	for (size_t i = im->env; i < im->env + im->nenv; i++) {
		memset(name, 0, sizeof(name));
		if (!read_at(pid, im->words[i], name, sizeof(name) - 1, &got))
			return false;
		if (is_variable(name, ABI_AGENT_ENV) || is_variable(name, ABI_AGENT_HELD))
			return false;
		if (strncmp(name, PRELOAD, sizeof(PRELOAD) - 1) || *preload)
			continue;
		*preload = i;
		if (!read_text(pid, im->words[i] + sizeof(PRELOAD) - 1, old, OLD))
			return false;
	}
	return true;
}

/* The value of @type in the auxiliary vector, or 0. */
static uint64_t value_of(const struct image *im, uint64_t type)
{
	for (size_t at = im->env + im->nenv + 1; at + 1 < im->n; at += 2)
		if (im->words[at] == type)
			return im->words[at + 1];
	return 0;
}

bool starts_is_new(pid_t pid)
{
	const struct arch_remote *arch = arch_remote();
	struct image *im = malloc(sizeof(*im));
	struct remote_thread thread;
	char old[OLD];
	Elf64_Ehdr header;
	size_t preload, got;
	uint64_t base;
	bool ret = false;

	if (im && !arch->look(pid, &thread) && thread.is_native && read_image(pid, thread.sp, im, &preload, old)) {
		base = value_of(im, AT_BASE);
		ret = base && read_at(pid, base, &header, sizeof(header), &got) && got == sizeof(header) &&
		      thread.pc == base + header.e_entry;
	}
	free(im);
	return ret;
}

bool starts_write(pid_t pid, const struct starts_bring *bring)
{
	const struct arch_remote *arch = arch_remote();
	struct image *im = malloc(sizeof(*im));
	char old[OLD], *block = NULL;
	struct remote_thread thread;
	size_t preload, len, lenv, words;
	struct iovec here, there;
	uint64_t at, sp;
	uint64_t *to;
	bool ret = false;

	if (!im || arch->look(pid, &thread) || !thread.is_native || !read_image(pid, thread.sp, im, &preload, old))
		goto out;
	len = sizeof(PRELOAD) + strlen(bring->path) + 1 + strlen(old);
	lenv = sizeof(ABI_AGENT_HELD) + 1 + strlen(bring->address);
	if (len + lenv > STRINGS)
		goto out;
	words = im->n + 1 + !preload;
	at = (thread.sp - len - lenv) & ~15ull;
	sp = (at - 8 * words) & ~15ull;
	block = calloc(1, thread.sp - sp);
	if (!block)
		goto out;
	snprintf(block + (at - sp), len, PRELOAD "%s%s%s", bring->path, *old ? ":" : "", old);
	snprintf(block + (at - sp) + len, lenv, ABI_AGENT_HELD "=%s", bring->address);
	if (preload)
		im->words[preload] = at;
	to = (uint64_t *)(void *)block;
	memcpy(to, im->words, 8 * im->env);
	to += im->env;
	*to++ = at + len;
	if (!preload)
		*to++ = at;
	memcpy(to, im->words + im->env, 8 * (im->n - im->env));
	here = (struct iovec){ block, thread.sp - sp };
	there = (struct iovec){ (void *)(uintptr_t)sp, thread.sp - sp };
	ret = process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)(thread.sp - sp) && !arch->set_sp(pid, sp);
out:
	free(block);
	free(im);
	return ret;
}
