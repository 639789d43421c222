/*
 * What the kernel allows and which features it has.  They are found by trying; the kernel's version is used only if
 * nothing else shows them.
 */
#include "place/kernel_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/strbuf.h"

int kernel_setting(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* BPF_JMP | BPF_JCOND, in linux/bpf.h since 6.9. */
enum { MAY_GOTO = BPF_JMP | 0xe0 };

bool kernel_knows_may_goto(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = MAY_GOTO },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "dtap_ask", KERNEL_LICENSE, insns, 3, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Load "return 0" as a program of @type: a descriptor or a negative errno. */
static int load_trivial(enum bpf_prog_type type, int attach, uint32_t flags)
{
	static const struct bpf_insn ret0[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = (enum bpf_attach_type)attach, .prog_flags = flags);
	int fd = bpf_prog_load(type, "dtap_ask", KERNEL_LICENSE, ret0, 2, &opts);

	return fd < 0 ? -errno : fd;
}

int kernel_available(struct strbuf *err)
{
	char buf[32];
	int fd;

	fd = load_trivial(BPF_PROG_TYPE_KPROBE, 0, 0);
	if (fd == -ENOSYS) {
		strbuf_puts(err, "this kernel was built without BPF (CONFIG_BPF_SYSCALL)");
		return fd;
	}
	if (fd == -EPERM || fd == -EACCES) {
		if (geteuid() != 0)
			strbuf_puts(err, "tracing needs the capabilities CAP_BPF and CAP_PERFMON, which this user"
					 " does not have: run it as root, for instance with sudo");
		else
			strbuf_puts(err, "the kernel refuses BPF although this is root: CAP_BPF and CAP_PERFMON"
					 " (or CAP_SYS_ADMIN) are missing here, as in a container; give them to it,"
					 " or trace from outside");
		return fd;
	}
	if (fd < 0) {
		strbuf_printf(err, "the kernel refuses BPF programs: %s", strerror(-fd));
		return fd;
	}
	close(fd);
	if (kernel_setting("/sys/bus/event_source/devices/uprobe/type", buf, sizeof(buf))) {
		strbuf_puts(err, "this kernel has no uprobes (CONFIG_UPROBE_EVENTS), or /sys is not mounted");
		return -ENOTSUP;
	}
	return 0;
}

/*
 * Programs of this attach type can be loaded even on kernels without such links (Linux 6.1).  So try a link: a kernel
 * that has them checks the path, and rejects a directory with EBADF.
 */
static bool knows_uprobe_multi(void)
{
	struct uprobe_multi_attr attr = { .attach_type = ATTACH_UPROBE_MULTI, .path = (uintptr_t)"/", .cnt = 1 };
	uint64_t off = 0;
	int fd, link;
	bool knows;

	fd = load_trivial(BPF_PROG_TYPE_KPROBE, ATTACH_UPROBE_MULTI, 0);
	if (fd < 0)
		return false;
	attr.prog_fd = (uint32_t)fd;
	attr.offsets = (uintptr_t)&off;
	link = (int)syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	knows = link < 0 && errno == EBADF;
	if (link >= 0)
		close(link);
	close(fd);
	return knows;
}

void kernel_find_features(struct kernel_features *f)
{
	unsigned int major = 0, minor = 0;
	struct utsname uts;
	int fd;

	f->uprobe_multi = knows_uprobe_multi();
	fd = load_trivial(BPF_PROG_TYPE_KPROBE, 0, BPF_F_SLEEPABLE);
	if (fd >= 0) {
		f->sleepable = true;
		close(fd);
	}
	f->globals = true;
	/* Before 46ba0e49b642 (6.10) the filter compared threads; only the version shows that. */
	if (!uname(&uts) && sscanf(uts.release, "%u.%u", &major, &minor) == 2)
		f->multi_pid = f->uprobe_multi && (major > 6 || (major == 6 && minor >= 10));
}

#define MOV(dst, src) { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = dst, .src_reg = src }
#define IMM(dst, v) { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = dst, .imm = v }
#define ADD(dst, v) { .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = dst, .imm = v }
#define HELPER(fn) { .code = BPF_JMP | BPF_CALL, .imm = fn }
#define LOAD(dst, v) { .code = BPF_LDX | BPF_DW | BPF_MEM, .dst_reg = dst, .src_reg = BPF_REG_10, .off = v }

/* r3 = @size bytes at r3 + @off, by the word at r10 - 8 */
#define READ(at, size)									\
	ADD(BPF_REG_3, (int32_t)(at)), MOV(BPF_REG_1, BPF_REG_10), ADD(BPF_REG_1, -8),		\
	IMM(BPF_REG_2, size), { .code = BPF_ST | BPF_DW | BPF_MEM, .dst_reg = BPF_REG_10, .off = -8 }, \
	HELPER(BPF_FUNC_probe_read_kernel), LOAD(BPF_REG_3, -8)

uint32_t kernel_pid_level(const struct ebpf_tasks *tasks)
{
	const struct ebpf_task_path *pid = &tasks->facts[ABI_TASK_TID];
	const struct bpf_insn insns[] = {
		HELPER(BPF_FUNC_get_current_task), MOV(BPF_REG_3, BPF_REG_0),
		READ(pid->off[0], 8), READ(tasks->pid_level, 4),
		MOV(BPF_REG_0, BPF_REG_3), { .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int fd, e;

	if (pid->n != 1)
		return 0;
	fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "dtap_ask", KERNEL_LICENSE, insns, sizeof(insns) / sizeof(insns[0]),
			   NULL);
	if (fd < 0)
		return 0;
	e = bpf_prog_test_run_opts(fd, &opts);
	close(fd);
	return e ? 0 : opts.retval;
}
