#include "vm/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "vm/calls.h"

enum { PAGE = 4096, STAT_FIRST = 26, STAT_LAST = 51 };

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18		/* Linux 4.14 */
#endif

/*
 * The process's identity.  It is in a page that is empty in a child of any kind of fork.  A child that shares its
 * parent's memory shares this, too; then the parent's pid is right for that memory.
 */
struct own {
	int pid;			/* atomic; 0: not asked yet */
	int has_stat;			/* atomic */
	uint64_t stat[STAT_LAST - STAT_FIRST + 1];
};

static struct own *own;			/* atomic; NULL: not mapped */

/* --- this process ------------------------------------------------------------------------------------- */

/* The process's identity; NULL: its page cannot be mapped. */
static struct own *find_own(void)
{
	struct own *o = __atomic_load_n(&own, __ATOMIC_ACQUIRE), *none = NULL;

	if (o)
		return o;
	o = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (o == MAP_FAILED)
		return NULL;
	if (syscall(SYS_madvise, o, PAGE, MADV_WIPEONFORK) ||
	    !__atomic_compare_exchange_n(&own, &none, o, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		munmap(o, PAGE);
		o = none;
	}
	return o;
}

/* The process's number in its own pid namespace. */
static int own_pid(void)
{
	struct own *o = find_own();
	int pid = o ? __atomic_load_n(&o->pid, __ATOMIC_RELAXED) : 0;

	if (__builtin_expect(pid, 1))
		return pid;
	pid = (int)syscall(SYS_getpid);
	if (o)
		__atomic_store_n(&o->pid, pid, __ATOMIC_RELAXED);
	return pid;
}

static void read_stat(uint64_t stat[STAT_LAST - STAT_FIRST + 1])
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char buf[1024], *p;
	ssize_t n = fd < 0 ? 0 : read(fd, buf, sizeof(buf) - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	p = strrchr(buf, ')');		/* skips the name, field 2, which may contain blanks */
	for (unsigned int i = 2; p && i <= STAT_LAST; i++, p = strchr(p + 1, ' '))
		if (i >= STAT_FIRST)
			stat[i - STAT_FIRST] = memory_decimal(p + 1);
}

uint64_t memory_own(unsigned int field)
{
	uint64_t stat[STAT_LAST - STAT_FIRST + 1] = { 0 };
	struct own *o;
	int saved = errno;

	o = find_own();
	if (o && __atomic_load_n(&o->has_stat, __ATOMIC_ACQUIRE)) {
		errno = saved;
		return o->stat[field - STAT_FIRST];
	}
	read_stat(stat);
	if (o) {
		memcpy(o->stat, stat, sizeof(stat));
		__atomic_store_n(&o->has_stat, 1, __ATOMIC_RELEASE);
	}
	errno = saved;
	return stat[field - STAT_FIRST];
}

struct abi_process_key memory_own_key(void)
{
	return (struct abi_process_key){ memory_own(26), memory_own(28) };
}

/* --- direct ------------------------------------------------------------------------------------------- */

/* How many bytes from @addr on are in the segment or the program's stack, or 0. */
static uint64_t room_at(const struct shm_run *r, uint64_t addr)
{
	const struct shm *s = r->shm;
	uint64_t off = addr - (uint64_t)(uintptr_t)s->data;

	if (off < s->data_size)
		return s->data_size - off;
	off = addr - (uint64_t)(uintptr_t)s->image;
	if (off < s->image_size)
		return s->image_size - off;
	off = addr - (uint64_t)(uintptr_t)r->thread.stack;
	return off < VM_STACK ? VM_STACK - off : 0;
}

/* Copy the string @src of @n bytes, cut to the room in @dst.  Returns bytes with the NUL. */
static int64_t copy_string(char *dst, uint64_t size, const char *src, uint64_t n)
{
	if (n > size - 1)
		n = size - 1;
	memmove(dst, src, n);
	dst[n] = '\0';
	return (int64_t)n + 1;
}

/* --- by the kernel ------------------------------------------------------------------------------------ */

/* Programs in the tracer can read its command line and no other memory of it. */
static bool may_read(const struct shm_run *r, uint64_t addr, uint64_t size)
{
	if (r->is_tracer)
		return addr >= memory_own(48) && addr < memory_own(49) && size <= memory_own(49) - addr;
	return !r->shm->no_memory && calls_may(ABI_CALLS_MEMORY);
}

/* Copy between @local and the @n pieces of this process's memory at @remote, with system call @nr.  Changes errno. */
static bool copy_by_kernel(long nr, const struct iovec *local, const struct iovec *remote, unsigned n)
{
	long done = syscall(nr, (long)own_pid(), local, 1L, remote, (long)n, 0L);

	/* After the main thread ended, the process's number no longer gives access to its memory. */
	if (__builtin_expect(done < 0 && errno == ESRCH, 0))
		done = syscall(nr, syscall(SYS_gettid), local, 1L, remote, (long)n, 0L);
	return done == (long)local->iov_len;
}

/* Copy between @here and this process's memory at @addr, with system call @nr.  Changes errno. */
static bool call(long nr, void *here, uint64_t addr, uint64_t size)
{
	struct iovec local = { here, size }, remote = { (void *)(uintptr_t)addr, size };

	return copy_by_kernel(nr, &local, &remote, 1);
}

static bool kernel_reads(const struct shm_run *r, void *dst, uint64_t size, uint64_t addr)
{
	return may_read(r, addr, size) && call(SYS_process_vm_readv, dst, addr, size);
}

static int64_t kernel_reads_string(const struct shm_run *r, char *dst, uint64_t size, uint64_t addr)
{
	uint64_t got = 0, part;
	char *end;

	for (; got < size; got += part) {
		/* Up to the next page, which may not be mapped. */
		part = PAGE - ((addr + got) & (PAGE - 1));
		if (part > size - got)
			part = size - got;
		if (!kernel_reads(r, dst + got, part, addr + got)) {
			memset(dst, 0, size);
			return -EFAULT;
		}
		end = memchr(dst + got, 0, part);
		if (!end)
			continue;
		/* Clear what was copied after the string: keys are compared with their padding. */
		memset(end, 0, part - (uint64_t)(end - dst - (int64_t)got));
		return (int64_t)(end - dst) + 1;
	}
	dst[size - 1] = '\0';
	return (int64_t)size;
}

/* --- what helpers call -------------------------------------------------------------------------------- */

int memory_read(struct shm_run *r, void *dst, uint64_t size, uint64_t addr)
{
	int saved = errno, err = 0;

	if (r->is_alive || room_at(r, addr) >= size) {
		memmove(dst, (const void *)(uintptr_t)addr, size);
		return 0;
	}
	if (!kernel_reads(r, dst, size, addr)) {
		memset(dst, 0, size);
		err = -EFAULT;
	} else if (r->note) {
		r->note(addr, dst, size);
	}
	errno = saved;
	return err;
}

/* 0: it is neither in the segment nor on the program's stack. */
static __attribute__((noinline)) int64_t read_own_string(const struct shm_run *r, char *dst, uint64_t size,
							  uint64_t addr)
{
	const char *src = (const char *)(uintptr_t)addr;
	uint64_t room = room_at(r, addr), len;

	len = room ? strnlen(src, room < size ? room : size) : 0;
	return len < room || (room && room >= size) ? copy_string(dst, size, src, len) : 0;
}

int64_t memory_copy_string(const struct shm_run *r, char *dst, uint64_t size, uint64_t addr)
{
	const char *src = (const char *)(uintptr_t)addr;

	if (__builtin_expect(r->is_alive || memory_is_known(r, addr), 1))
		return copy_string(dst, size, src, strnlen(src, size - 1));
	return read_own_string(r, dst, size, addr);
}

int64_t memory_read_string(struct shm_run *r, char *dst, uint64_t size, uint64_t addr)
{
	int64_t n = memory_copy_string(r, dst, size, addr);
	int saved;

	if (__builtin_expect(n != 0, 1))
		return n;
	saved = errno;
	n = kernel_reads_string(r, dst, size, addr);
	if (n > 0 && r->note)
		r->note(addr, dst, (uint64_t)n - ((uint64_t)n == size));
	errno = saved;
	return n;
}

int memory_read_pieces(const struct shm_run *r, void *dst, const struct memory_piece *pieces, unsigned n)
{
	struct iovec local = { dst, 0 }, remote[MEMORY_PIECES];
	int saved = errno, err = 0;

	if (n > MEMORY_PIECES)
		return -EFAULT;
	for (unsigned k = 0; k < n; k++) {
		if (!may_read(r, pieces[k].addr, pieces[k].size))
			return -EFAULT;
		remote[k] = (struct iovec){ (void *)(uintptr_t)pieces[k].addr, pieces[k].size };
		local.iov_len += pieces[k].size;
	}
	if (!copy_by_kernel(SYS_process_vm_readv, &local, remote, n))
		err = -EFAULT;
	errno = saved;
	return err;
}

int memory_write(struct shm_run *r, uint64_t addr, const void *src, uint64_t size)
{
	int saved = errno, err = -EFAULT;

	if (!r->is_tracer && !r->shm->no_memory && calls_may(ABI_CALLS_MEMORY) &&
	    call(SYS_process_vm_writev, (void *)(uintptr_t)src, addr, size))
		err = 0;
	errno = saved;
	return err;
}
