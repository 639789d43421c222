/*
 * What qemu-user lacks of the system calls that programs in the target place make: process_vm_readv(2) and
 * process_vm_writev(2), here for the process itself.  Loaded by LD_PRELOAD, for tests.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long make(long nr, const long a[6])
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a[0], x1 __asm__("x1") = a[1], x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3], x4 __asm__("x4") = a[4], x5 __asm__("x5") = a[5];

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

/* Copy through a pipe, page by page: the kernel refuses addresses that may not be read or written. */
static bool copy_piece(const int pipe_fds[2], char *to, const char *from, size_t n)
{
	enum { PAGE = 4096 };

	for (size_t part; n; to += part, from += part, n -= part) {
		part = n < PAGE ? n : PAGE;
		if (write(pipe_fds[1], from, part) != (ssize_t)part || read(pipe_fds[0], to, part) != (ssize_t)part)
			return false;
	}
	return true;
}

/* One piece here, some there: what dtap asks for. */
static long copy(bool write_there, const struct iovec *local, const struct iovec *remote, long n)
{
	char *here = local->iov_base;
	bool good = true;
	int fds[2];
	long done = 0;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	for (long k = 0; good && k < n; k++) {
		char *there = remote[k].iov_base;

		good = copy_piece(fds, write_there ? there : here, write_there ? here : there, remote[k].iov_len);
		if (good)
			done += (long)remote[k].iov_len;
		here += remote[k].iov_len;
	}
	close(fds[0]);
	close(fds[1]);
	return done ? done : -EFAULT;
}

long syscall(long nr, ...)
{
	long a[6], ret;
	va_list ap;

	va_start(ap, nr);
	for (int k = 0; k < 6; k++)
		a[k] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_process_vm_readv || nr == SYS_process_vm_writev)
		ret = copy(nr == SYS_process_vm_writev, (const struct iovec *)a[1], (const struct iovec *)a[3], a[4]);
	else
		ret = make(nr, a);
	if (ret >= 0 || ret < -4095)
		return ret;
	errno = (int)-ret;
	return -1;
}
