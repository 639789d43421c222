/*
 * Makes every system call of this machine, each once, and most of them with what the kernel refuses: none changes anything
 * but this process.  It begins with umask(0123), and nothing but what is written here calls the kernel from there on.
 *
 * CALL(name, arguments ...): the kernel's name; arguments that are left out are 0.  syscalls_test.py reads the names.
 */
#include <fcntl.h>
#include <linux/limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOWHERE "/nosuch/x"
#define BAD 8L			/* an address that nobody has */
#define ARGS(a, b, c, d, e, f, ...) (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)
#define CALL(NAME, ...) call(NR_##NAME, ARGS(__VA_ARGS__, 0, 0, 0, 0, 0, 0))

enum number {
#define SYSCALL(N, NAME) NR_##NAME = N,
#include "arch/x86_64/syscalls.def"
#undef SYSCALL
};

static char zeros[8192] __attribute__((aligned(4096)));

static long call(enum number n, long a, long b, long c, long d, long e, long f)
{
	return syscall(n, a, b, c, d, e, f);
}

static void on_alarm(int number)
{
	(void)number;
}

static void files(void)
{
	CALL(access, NOWHERE, R_OK | X_OK);
	CALL(acct, NOWHERE);
	CALL(chdir, NOWHERE);
	CALL(chmod, NOWHERE, 0640);
	CALL(chown, NOWHERE, 1, 2);
	CALL(chroot, NOWHERE);
	CALL(close, -1);
	CALL(copy_file_range, -1, 0, -1, 0, 5, 0);
	CALL(creat, NOWHERE, 0640);
	CALL(dup, -1);
	CALL(dup2, -1, 9);
	CALL(dup3, -1, 9, O_CLOEXEC);
	CALL(epoll_create, -1);
	CALL(epoll_create1, 0x7777);
	CALL(epoll_ctl, -1, 1, -1, zeros);
	CALL(epoll_pwait, -1, zeros, 1, 0, 0, 8);
	CALL(epoll_wait, -1, zeros, 1, 0);
	CALL(eventfd2, 0, 0x7777);
	CALL(faccessat, AT_FDCWD, NOWHERE, R_OK);
	CALL(faccessat2, AT_FDCWD, NOWHERE, W_OK, AT_EACCESS);
	CALL(fadvise64, -1, 1, 2, 3);
	CALL(fallocate, -1, 1, 2, 3);
	CALL(fanotify_init, -1, O_RDONLY);
	CALL(fanotify_mark, -1, 1, 2, AT_FDCWD, NOWHERE);
	CALL(fchdir, -1);
	CALL(fchmod, -1, 0640);
	CALL(fchmodat, AT_FDCWD, NOWHERE, 0640);
	CALL(fchown, -1, 1, 2);
	CALL(fchownat, AT_FDCWD, NOWHERE, 1, 2, AT_SYMLINK_NOFOLLOW);
	CALL(fcntl, -1, F_GETFD);
	CALL(fdatasync, -1);
	CALL(flock, -1, 1);
	CALL(fstat, -1, zeros);
	CALL(fstatfs, -1, zeros);
	CALL(fsync, -1);
	CALL(ftruncate, -1, 7);
	CALL(futimesat, AT_FDCWD, NOWHERE, zeros);
	CALL(getcwd, zeros, 1);
	CALL(getdents, -1, zeros, 100);
	CALL(getdents64, -1, zeros, 100);
	CALL(inotify_add_watch, -1, NOWHERE, 2);
	CALL(inotify_init1, 0x7777);
	CALL(inotify_rm_watch, -1, 1);
	CALL(ioctl, -1, 0x5401, zeros);
	CALL(lchown, NOWHERE, 1, 2);
	CALL(link, NOWHERE, "/nosuch/y");
	CALL(linkat, AT_FDCWD, NOWHERE, AT_FDCWD, "/nosuch/y", AT_SYMLINK_FOLLOW);
	CALL(lseek, -1, 5, SEEK_END);
	CALL(lstat, NOWHERE, zeros);
	CALL(mkdir, NOWHERE, 0750);
	CALL(mkdirat, AT_FDCWD, NOWHERE, 0750);
	CALL(mknod, NOWHERE, 0010640, 0);
	CALL(mknodat, AT_FDCWD, NOWHERE, 0010640, 0);
	CALL(mount, "nosuch", NOWHERE, "nosuch", 1, "x=1");
	CALL(name_to_handle_at, AT_FDCWD, NOWHERE, zeros, zeros, 0);
	CALL(newfstatat, AT_FDCWD, NOWHERE, zeros, AT_SYMLINK_NOFOLLOW);
	CALL(open, NOWHERE, O_WRONLY | O_APPEND);
	CALL(open_by_handle_at, -1, zeros, O_RDONLY);
	CALL(openat, AT_FDCWD, NOWHERE, O_RDWR | O_CREAT, 0640);
	CALL(pipe2, BAD, O_CLOEXEC);
	CALL(pivot_root, NOWHERE, NOWHERE);
	CALL(pread64, -1, zeros, 10, 20);
	CALL(preadv, -1, zeros, 0, 0);
	CALL(preadv2, -1, zeros, 0, 0, 0, 0);
	CALL(pwrite64, -1, "text", 4, 20);
	CALL(pwritev, -1, zeros, 0, 0);
	CALL(pwritev2, -1, zeros, 0, 0, 0, 0);
	CALL(quotactl, -1, NOWHERE, 0, zeros);
	CALL(read, -1, zeros, 10);
	CALL(readahead, -1, 1, 2);
	CALL(readlink, NOWHERE, zeros, 10);
	CALL(readlinkat, AT_FDCWD, NOWHERE, zeros, 10);
	CALL(readv, -1, zeros, 0);
	CALL(rename, NOWHERE, "/nosuch/y");
	CALL(renameat, AT_FDCWD, NOWHERE, AT_FDCWD, "/nosuch/y");
	CALL(renameat2, AT_FDCWD, NOWHERE, AT_FDCWD, "/nosuch/y", 1);
	CALL(rmdir, NOWHERE);
	CALL(sendfile, -1, -1, 0, 10);
	CALL(signalfd4, -1, BAD, 8, 0);
	CALL(splice, -1, 0, -1, 0, 10, 1);
	CALL(stat, NOWHERE, zeros);
	CALL(statfs, NOWHERE, zeros);
	CALL(statx, AT_FDCWD, NOWHERE, 0, 0xfff, zeros);
	CALL(swapoff, NOWHERE);
	CALL(swapon, NOWHERE, 0);
	CALL(symlink, "to", NOWHERE);
	CALL(symlinkat, "to", AT_FDCWD, NOWHERE);
	CALL(sync_file_range, -1, 1, 2, 1);
	CALL(syncfs, -1);
	CALL(sysfs, 99);
	CALL(tee, -1, -1, 10, 1);
	CALL(truncate, NOWHERE, 7);
	CALL(umount2, NOWHERE, 1);
	CALL(unlink, NOWHERE);
	CALL(unlinkat, AT_FDCWD, NOWHERE, AT_REMOVEDIR);
	CALL(uselib, NOWHERE);
	CALL(ustat, 0, zeros);
	CALL(utime, NOWHERE, zeros);
	CALL(utimensat, AT_FDCWD, NOWHERE, zeros, 0);
	CALL(utimes, NOWHERE, zeros);
	CALL(vmsplice, -1, zeros, 0, 0);
	CALL(write, -1, "text", 4);
	CALL(writev, -1, zeros, 0);
	CALL(fgetxattr, -1, "user.a", zeros, 10);
	CALL(flistxattr, -1, zeros, 10);
	CALL(fremovexattr, -1, "user.a");
	CALL(fsetxattr, -1, "user.a", "v", 1, 1);
	CALL(getxattr, NOWHERE, "user.a", zeros, 10);
	CALL(lgetxattr, NOWHERE, "user.a", zeros, 10);
	CALL(listxattr, NOWHERE, zeros, 10);
	CALL(llistxattr, NOWHERE, zeros, 10);
	CALL(lremovexattr, NOWHERE, "user.a");
	CALL(lsetxattr, NOWHERE, "user.a", "v", 1, 1);
	CALL(removexattr, NOWHERE, "user.a");
	CALL(setxattr, NOWHERE, "user.a", "v", 1, 1);
	CALL(select, 0, 0, 0, 0, zeros);
	CALL(pselect6, 0, 0, 0, 0, zeros, 0);
	CALL(poll, zeros, 0, 0);
	CALL(ppoll, zeros, 0, zeros, 0, 8);
	CALL(io_cancel, 0, zeros, zeros);
	CALL(io_destroy, 0);
	CALL(io_getevents, 0, 0, 0, zeros, zeros);
	CALL(io_setup, 0, zeros);
	CALL(io_submit, 0, 0, zeros);
}

static void sockets(void)
{
	CALL(accept, -1, zeros, zeros);
	CALL(accept4, -1, zeros, zeros, SOCK_CLOEXEC);
	CALL(bind, -1, zeros, 16);
	CALL(connect, -1, zeros, 16);
	CALL(getpeername, -1, zeros, zeros);
	CALL(getsockname, -1, zeros, zeros);
	CALL(getsockopt, -1, SOL_SOCKET, SO_TYPE, zeros, zeros);
	CALL(listen, -1, 5);
	CALL(recvfrom, -1, zeros, 10, MSG_DONTWAIT, 0, 0);
	CALL(recvmmsg, -1, zeros, 0, MSG_DONTWAIT, 0);
	CALL(recvmsg, -1, zeros, MSG_DONTWAIT);
	CALL(sendmmsg, -1, zeros, 0, MSG_DONTWAIT);
	CALL(sendmsg, -1, zeros, MSG_DONTWAIT);
	CALL(sendto, -1, "text", 4, MSG_DONTWAIT, 0, 0);
	CALL(setsockopt, -1, SOL_SOCKET, SO_REUSEADDR, zeros, 4);
	CALL(shutdown, -1, SHUT_RD);
	CALL(socket, AF_UNIX, 77, 0);
	CALL(socketpair, AF_UNIX, 77, 0, zeros);
}

static void memory(void)
{
	CALL(brk, 0);
	CALL(get_mempolicy, 0, 0, 0, 0, 0);
	CALL(madvise, 1, 1, 4);
	CALL(mbind, 1, 1, 0, 0, 0, 0);
	CALL(membarrier, 0, 0);
	CALL(memfd_create, BAD, 0);
	CALL(memfd_secret, -1);
	CALL(migrate_pages, -1, 0, 0, 0);
	CALL(mincore, 1, 1, zeros);
	CALL(mlock, BAD, 1);
	CALL(mlock2, BAD, 1, 1);
	CALL(mlockall, 0);
	CALL(mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CALL(modify_ldt, 99, 0, 0);
	CALL(move_pages, -1, 0, 0, 0, 0, 0);
	CALL(mprotect, 1, 1, PROT_READ);
	CALL(mremap, 1, 1, 1, 0);
	CALL(msync, 1, 1, MS_SYNC);
	CALL(munlock, BAD, 1);
	CALL(munlockall, 0);
	CALL(munmap, 1, 0);
	CALL(pkey_alloc, 77, 0);
	CALL(pkey_free, 77);
	CALL(pkey_mprotect, 1, 1, PROT_READ, 77);
	CALL(process_vm_readv, -1, zeros, 0, zeros, 0, 0);
	CALL(process_vm_writev, -1, zeros, 0, zeros, 0, 0);
	CALL(remap_file_pages, 1, 1, 0, 0, 0);
	CALL(set_mempolicy, 99, 0, 0);
	CALL(userfaultfd, 0x7777);
}

static void messages(void)
{
	CALL(mq_getsetattr, -1, 0, zeros);
	CALL(mq_notify, -1, 0);
	CALL(mq_open, BAD, O_RDONLY);
	CALL(mq_timedreceive, -1, zeros, 10, 0, zeros);
	CALL(mq_timedsend, -1, "text", 4, 1, zeros);
	CALL(mq_unlink, "nosuch");
	CALL(msgctl, -1, 99, zeros);
	CALL(msgget, 0x7fdd1234, 0);
	CALL(msgrcv, -1, zeros, 10, 0, 0);
	CALL(msgsnd, -1, zeros, 1, 0);
	CALL(semctl, -1, 0, 99, 0);
	CALL(semget, 0x7fdd1234, 0, 0);
	CALL(semop, -1, zeros, 1);
	CALL(semtimedop, -1, zeros, 1, 0);
	CALL(shmat, -1, 0, 0);
	CALL(shmctl, -1, 99, zeros);
	CALL(shmdt, 1);
	CALL(shmget, 0x7fdd1234, 1, 0);
}

static void times_and_signals(void)
{
	CALL(adjtimex, zeros);
	CALL(alarm, 0);
	CALL(clock_adjtime, CLOCK_REALTIME, zeros);
	CALL(clock_getres, CLOCK_MONOTONIC, zeros + 4096);
	CALL(clock_gettime, CLOCK_MONOTONIC, zeros + 4096);
	CALL(clock_nanosleep, CLOCK_MONOTONIC, 0, zeros + 6000, 0);
	CALL(clock_settime, 99, zeros);
	CALL(getitimer, ITIMER_REAL, zeros + 4096);
	CALL(gettimeofday, zeros + 4096, 0);
	CALL(kill, 0x3fffffff, SIGTERM);
	CALL(nanosleep, zeros + 6000, 0);
	CALL(restart_syscall, 0);
	CALL(rt_sigaction, 99, 0, 0, 8);
	CALL(rt_sigpending, zeros + 4096, 8);
	CALL(rt_sigprocmask, 99, zeros + 6000, 0, 8);
	CALL(rt_sigqueueinfo, -1, 0, zeros);
	CALL(rt_sigsuspend, zeros + 6000, 0);
	CALL(rt_sigtimedwait, zeros + 6000, 0, zeros + 6000, 8);
	CALL(rt_tgsigqueueinfo, -1, -1, 0, zeros);
	CALL(setitimer, 99, zeros + 6000, 0);
	CALL(settimeofday, BAD, 0);
	CALL(sigaltstack, 0, zeros + 4096);
	CALL(tgkill, -1, -1, 0);
	CALL(time, 0);
	CALL(timer_create, 99, 0, zeros + 4096);
	CALL(timer_delete, 0x7777);
	CALL(timer_getoverrun, 0x7777);
	CALL(timer_gettime, 0x7777, zeros + 4096);
	CALL(timer_settime, 0x7777, 0, zeros + 6000, 0);
	CALL(timerfd_create, 99, 0);
	CALL(timerfd_gettime, -1, zeros + 4096);
	CALL(timerfd_settime, -1, 0, zeros + 6000, 0);
	CALL(times, zeros + 4096);
	CALL(tkill, -1, 0);
}

static void processes(void)
{
	CALL(add_key, "user", "d", 0, 0, 0x7777);
	CALL(arch_prctl, 99, 0);
	CALL(bpf, 999, zeros, 0);
	CALL(capget, BAD, 0);
	CALL(capset, BAD, 0);
	CALL(delete_module, "nosuch", O_NONBLOCK);
	CALL(execve, NOWHERE, zeros, zeros);
	CALL(execveat, AT_FDCWD, NOWHERE, zeros, zeros, 0);
	CALL(finit_module, -1, "", 0);
	CALL(futex, 1, 0, 0, 0, 0, 0);
	CALL(get_robust_list, 0, zeros + 4096, zeros + 5000);
	CALL(getcpu, zeros + 4096, 0, 0);
	CALL(getegid, 0);
	CALL(geteuid, 0);
	CALL(getgid, 0);
	CALL(getgroups, 0, 0);
	CALL(getpgid, 0);
	CALL(getpgrp, 0);
	CALL(getpid, 0);
	CALL(getppid, 0);
	CALL(getpriority, 99, 0);
	CALL(getrandom, "", 0, 0);
	CALL(getresgid, zeros + 4096, zeros + 5000, zeros + 5100);
	CALL(getresuid, zeros + 4096, zeros + 5000, zeros + 5100);
	CALL(getrlimit, 99, zeros + 4096);
	CALL(getrusage, 99, zeros + 4096);
	CALL(getsid, 0);
	CALL(gettid, 0);
	CALL(getuid, 0);
	CALL(init_module, 0, 0, "");
	CALL(ioperm, 0x10000, 1, 1);
	CALL(iopl, 4);
	CALL(ioprio_get, 99, 0);
	CALL(ioprio_set, 99, 0, 0);
	CALL(kcmp, -1, -1, 99, 0, 0);
	CALL(kexec_file_load, -1, -1, 0, "", 0x7777);
	CALL(kexec_load, 0, 17, 0, 0x7777);
	CALL(keyctl, 9999);
	CALL(perf_event_open, BAD, 0, 0, -1, 0);
	CALL(personality, 0xffffffff);
	CALL(prctl, 999, 0, 0, 0, 0);
	CALL(prlimit64, 0, 99, 0, 0);
	CALL(ptrace, 999, 0, 0, 0);
	CALL(reboot, 1, 2, 3, 0);
	CALL(request_key, BAD, "d", 0, 0);
	CALL(sched_get_priority_max, 0);
	CALL(sched_get_priority_min, 0);
	CALL(sched_getaffinity, 0, 0, zeros + 4096);
	CALL(sched_getattr, 0, 0, 0, 0);
	CALL(sched_getparam, -1, zeros + 4096);
	CALL(sched_getscheduler, 0);
	CALL(sched_rr_get_interval, -1, zeros + 4096);
	CALL(sched_setaffinity, 0, 0, zeros + 6000);
	CALL(sched_setattr, 0, 0, 0);
	CALL(sched_setparam, -1, zeros);
	CALL(sched_setscheduler, 0, 99, zeros);
	CALL(sched_yield, 0);
	CALL(seccomp, 99, 0, 0);
	CALL(set_robust_list, zeros, 1);
	CALL(set_tid_address, zeros + 4096);
	CALL(setdomainname, BAD, -1);
	CALL(setfsgid, -1);
	CALL(setfsuid, -1);
	CALL(setgid, -1);
	CALL(setgroups, -1, 0);
	CALL(sethostname, BAD, -1);
	CALL(setns, -1, 0);
	CALL(setpgid, -1, 0);
	CALL(setpriority, 99, 0, 0);
	CALL(setregid, -1, -1);
	CALL(setresgid, -1, -1, -1);
	CALL(setresuid, -1, -1, -1);
	CALL(setreuid, -1, -1);
	CALL(setrlimit, 99, zeros);
	CALL(setsid, 0);
	CALL(setuid, -1);
	CALL(sysinfo, BAD);
	CALL(syslog, 99, 0, 0);
	CALL(uname, BAD);
	CALL(unshare, 1);
	CALL(wait4, -1, 0, WNOHANG, 0);
	CALL(waitid, 99, 0, zeros, 0, 0);
	CALL(_sysctl, 0);
	CALL(sync, 0);
}

/* What has no alias. */
static void others(void)
{
	CALL(afs_syscall, 0);
	CALL(cachestat, -1, 0, 0, 0);
	CALL(clone3, BAD, 0);
	CALL(close_range, 1000, 1, 0);
	CALL(create_module, 0);
	CALL(epoll_ctl_old, 0);
	CALL(epoll_pwait2, -1, zeros, 1, zeros, 0, 8);
	CALL(epoll_wait_old, 0);
	CALL(eventfd, 0);
	CALL(fchmodat2, AT_FDCWD, NOWHERE, 0640, 0);
	CALL(file_getattr, AT_FDCWD, NOWHERE, zeros, 0, 0);
	CALL(file_setattr, AT_FDCWD, NOWHERE, zeros, 0, 0);
	CALL(fsconfig, -1, 0, 0, 0, 0);
	CALL(fsmount, -1, 0, 0);
	CALL(fsopen, BAD, 0);
	CALL(fspick, AT_FDCWD, NOWHERE, 0);
	CALL(futex_requeue, zeros, 0x7777, 0, 0);
	CALL(futex_wait, zeros, 0, 0, 0x7777, 0, 0);
	CALL(futex_waitv, zeros, 0, 0, 0, 0);
	CALL(futex_wake, zeros, 0, 0, 0x7777);
	CALL(get_kernel_syms, 0);
	CALL(get_thread_area, 0);
	CALL(getpmsg, 0);
	CALL(getxattrat, AT_FDCWD, NOWHERE, 0, "user.a", zeros, 0);
	CALL(inotify_init, 0);
	CALL(io_pgetevents, 0, 0, 0, zeros, zeros, 0);
	CALL(io_uring_enter, -1, 0, 0, 0, 0, 0);
	CALL(io_uring_register, -1, 99, 0, 0);
	CALL(io_uring_setup, 0, BAD);
	CALL(landlock_add_rule, -1, 99, BAD, 0);
	CALL(landlock_create_ruleset, BAD, 1, 0);
	CALL(landlock_restrict_self, -1, 0x7777);
	CALL(listmount, 0, 0, 0, 0x7777);
	CALL(listxattrat, AT_FDCWD, NOWHERE, 0, zeros, 10);
	CALL(lookup_dcookie, 0);
	CALL(lsm_get_self_attr, 0, 0, 0, 0);
	CALL(lsm_list_modules, 0, 0, 0x7777);
	CALL(lsm_set_self_attr, 0, 0, 0, 0);
	CALL(map_shadow_stack, 1, 1, 0x7777);
	CALL(mount_setattr, -1, NOWHERE, 0x7777, 0, 0);
	CALL(move_mount, -1, NOWHERE, -1, NOWHERE, 0x7777777);
	CALL(mseal, 1, 1, 0);
	CALL(nfsservctl, 0);
	CALL(open_tree, AT_FDCWD, NOWHERE, 0);
	CALL(open_tree_attr, AT_FDCWD, NOWHERE, 0, 0, 0);
	CALL(openat2, AT_FDCWD, NOWHERE, BAD, 0);
	CALL(pidfd_getfd, -1, -1, 0);
	CALL(pidfd_open, -1, 0);
	CALL(pidfd_send_signal, -1, 0, 0, 0);
	CALL(pipe, BAD);
	CALL(process_madvise, -1, zeros, 0, 0, 0);
	CALL(process_mrelease, -1, 0);
	CALL(putpmsg, 0);
	CALL(query_module, 0);
	CALL(quotactl_fd, -1, 0, 0, 0);
	CALL(removexattrat, AT_FDCWD, NOWHERE, 0, "user.a");
	CALL(rseq, BAD, 1, 0, 0);
	CALL(security, 0);
	CALL(set_mempolicy_home_node, 1, 1, 0, 0);
	CALL(set_thread_area, 0);
	CALL(setxattrat, AT_FDCWD, NOWHERE, 0, "user.a", zeros, 0);
	CALL(signalfd, -1, BAD, 8);
	CALL(statmount, 0, 0, 0, 0x7777);
	CALL(tuxcall, 0);
	CALL(vserver, 0);
}

/* Children that end at once, by the calls that have no other end. */
static void children(void)
{
	if (!CALL(fork, 0))
		CALL(exit, 3);
	CALL(wait4, -1, 0, 0, 0);
	if (!vfork())		/* CALL(vfork): not by a function that returns twice on one stack */
		_exit(4);	/* CALL(exit_group, 4) */
	CALL(wait4, -1, 0, 0, 0);
	if (!CALL(clone, SIGCHLD, 0, 0, 0, 0))
		CALL(exit, 5);
	CALL(wait4, -1, 0, 0, 0);
}

/* Ended by the first of the signals that comes after the call; their handler ends by CALL(rt_sigreturn). */
static void waiting(void)
{
	struct sigaction act = { .sa_handler = on_alarm };
	struct itimerval each = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
	CALL(pause, 0);
	setitimer(ITIMER_REAL, &never, NULL);
}

int main(void)
{
	CALL(umask, 0123);
	files();
	sockets();
	memory();
	messages();
	times_and_signals();
	processes();
	others();
	children();
	waiting();
	/* What hangs up a terminal is left to somebody who may not. */
	CALL(setresuid, 65534, 65534, 65534);
	CALL(vhangup, 0);
	return 0;
}
