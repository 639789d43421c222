/*
 * Executable memory that nobody can write while it can be executed.
 *
 * The code is written through a mapping of an anonymous file, which is then unmapped; the file is sealed against
 * further writes and mapped a second time, executable.  So a stray write can never change code that runs, and a
 * policy that forbids making written memory executable (mprotect) does not apply.  Where the system refuses (noexec
 * memfd: vm.memfd_noexec, SELinux) the caller gets the errno.
 */
#include "vm/prog.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/segment.h"
#include "vm/calls.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U	/* Linux 6.3; before it, every memfd was executable */
#endif

static int new_file(void)
{
	int fd;

	if (!calls_may(ABI_CALLS_CODE))
		return -EPERM;
	fd = memfd_create(ABI_CODE, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(ABI_CODE, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

int vm_exec_map(const void *bytes, size_t size, void **ret)
{
	int err = 0, fd = new_file();
	void *at;

	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)size))
		goto fail;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		goto fail;
	memcpy(at, bytes, size);
	munmap(at, size);
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto fail;
	at = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		goto fail;
	*ret = at;
	close(fd);
	return 0;
fail:
	err = -errno;
	close(fd);
	return err;
}
