"""SystemTap's tapset: what it has is there or is refused by name; what it tells is compared with /proc and the program."""
import decimal
import json
import math
import os
import random
import re
import struct
import subprocess

import pytest

import harness

PYTHON = "/usr/bin/python3"
DATA = harness.TOP / "tests" / "stp" / "data"
ENV = {"PATH": "/usr/bin:/usr/sbin:/bin", "SYSTEMTAP_TAPSET": str(harness.TOP / "share" / "tapset")}
VALUES = {"l": "1", "s": '"a"', "?": "1"}


def stap(*args):
    return harness.stap("-w", *args, env=ENV)


def traced(tmp_path, program, script, *options):
    """What @program says of itself, one line of JSON, and the lines of the script."""
    path = tmp_path / "program.py"
    path.write_text(program)
    result = stap(*options, "-e", script, "-c", f"{PYTHON} {path}")
    lines = result.out.splitlines()
    said = [line for line in lines if line.startswith("{")]
    assert result.code == 0 and len(said) == 1, result
    return json.loads(said[0]), [line for line in lines if line not in said]


# --- what there is ---------------------------------------------------------------------------------------------------

def rows(name):
    return [line for line in (DATA / name).read_text().splitlines() if not line.startswith("#")]


def test_functions_are_there_or_refused():
    """A function whose name says nothing to dtap would be "unresolved"."""
    calls = []
    for row in rows("functions.txt"):
        result, name, params = re.fullmatch(r"(.) (\w+)\((.*)\)", row).groups()
        calls.append(f"{name}({', '.join(VALUES[p] for p in params)})")
    assert len(calls) > 540
    for at in range(0, len(calls), 16):	# only so many messages are given
        result = stap("-g", "-v", "-p2", "-e", "probe never { " + " ".join(calls[at:at + 16]) + " nosuch() }")
        assert set(re.findall(r"unresolved function (\w+)", result.err)) == {"nosuch"}, result
        assert "arity mismatch" not in result.err, result


def test_aliases_are_there_or_refused():
    """Each alias is found, or the reason is said; kernel functions and files that are not there are reasons too."""
    names = rows("aliases.txt")
    assert len(names) > 900
    for at in range(0, len(names), 40):
        script = "".join(f"probe {name} {{ println(1) }}\n" for name in names[at:at + 40]) + "probe no.such { }"
        result = stap("-v", "-p2", "-e", script)
        assert re.findall(r"(?:mismatch .*?|invalid suffix for probe|truncated .*?): identifier '(\w+)'", result.err) == ["no"], result


def test_refusals_name_the_way():
    result = stap("-p2", "-e", "probe nfs.fop.read, vm.pagefault.return { println(nfsderror(1)) }")
    assert result.code == 1
    assert "it is about the kernel's NFS client, which dtap does not trace: syscall.open" in result.err, result
    assert "it is about the kernel's management of memory" in result.err, result
    result = stap("-p2", "-e", "probe begin { println(nfsderror(1)) }")
    assert "function nfsderror is about the kernel's NFS server, which dtap does not trace" in result.err, result


# --- tasks ------------------------------------------------------------------------------------------------------------

TASK = """
import json, os, resource, sys
os.chdir(sys.argv[0].rpartition("/")[0])
resource.setrlimit(resource.RLIMIT_NOFILE, (321, 654))
f = open("a file", "w")
r, w = os.pipe()
import socket
s = socket.socket()
gone = open("gone", "w"); os.unlink("gone")
mem = open("/proc/self/mem", "rb", 0)
names = [n for n in dir(resource) if n.startswith("RLIMIT_")]
statm = [int(n) for n in open("/proc/self/statm").read().split()]
comm = lambda pid: open(f"/proc/{pid}/comm").read().strip()
print(json.dumps({
    "cwd": os.getcwd(), "exe": os.readlink("/proc/self/exe"), "fds": len(os.listdir("/proc/self/fd")) - 1,
    "links": [os.readlink(f"/proc/self/fd/{x.fileno() if hasattr(x, 'fileno') else x}") for x in (f, r, s, gone, mem)],
    "limits": {n: resource.getrlimit(getattr(resource, n))[0] for n in names if hasattr(resource, n)},
    "statm": statm, "parent": comm(os.getppid()), "pid": os.getpid(), "ppid": os.getppid(),
    "utime": os.times()[0]}), flush=True)
os.umask(f.fileno()); os.umask(r); os.umask(s.fileno()); os.umask(gone.fileno()); os.umask(mem.fileno())
os.getsid(0)
"""

TASK_SCRIPT = """
probe kernel.syscall("umask") { if (pid() == target()) println(fullpath_struct_file(task_current(), task_fd_lookup(task_current(), $arg1))) }
probe kernel.syscall("getsid")
{
	if (pid() != target()) next
	t = task_current()
	println(fullpath_struct_path(task_cwd_path(t)))
	println(fullpath_struct_file(t, task_exe_file(t)))
	println(task_open_file_handles(t), " ", task_max_file_handles(t))
	println(task_rlimit_cpu(t), " ", task_rlimit_fsize(t), " ", task_rlimit_data(t), " ", task_rlimit_stack(t), " ",
		task_rlimit_core(t), " ", task_rlimit_rss(t), " ", task_rlimit_nproc(t), " ", task_rlimit_nofile(t), " ",
		task_rlimit_memlock(t), " ", task_rlimit_as(t), " ")
	println(task_rlimit(t, "RLIMIT_NOFILE"), " ", task_rlimit(t, "RLIMIT_SIGPENDING"), " ", task_rlimit(t, "RLIMIT_RTTIME"),
		" ", task_rlimit(t, "NOFILE"))
	println(proc_mem_size(), " ", proc_mem_rss(), " ", proc_mem_shr(), " ", proc_mem_txt(), " ", proc_mem_data())
	println(pid2execname(ppid()), " ", pid2task(pid()) == t, " ", task_pid(pid2task(ppid())), " ", pid2task(1 << 23))
	println(task_utime(tid()) == task_utime(), " ", task_utime_tid(tid()) / 1000000, " ", task_start_time(tid()) > 0,
		" ", proc_mem_size(pid()) == proc_mem_size())
	println(ns_pid(), " ", task_ns_tid(t), " ", ns_uid(), " ", ns_ppid())
	println(pstrace(t))
}
"""


@pytest.mark.needs_bpf
def test_tasks(tmp_path):
    said, lines = traced(tmp_path, TASK, TASK_SCRIPT)
    unlimited = lambda n: -1 if n == -1 else n
    limits = said["limits"]
    links = lines[:5]
    assert links == [re.sub(r"^/proc/\d+/mem$", f"/proc/{said['pid']}/mem", link) for link in said["links"]], lines
    cwd, exe, files, by_number, by_name, memory, ids, times, ns, ancestors = lines[5:]
    assert (cwd, exe) == (said["cwd"], said["exe"])
    assert files.split()[0] == str(said["fds"]) and int(files.split()[1]) >= 64
    order = "CPU FSIZE DATA STACK CORE RSS NPROC NOFILE MEMLOCK AS".split()
    assert by_number.split() == [str(unlimited(limits[f"RLIMIT_{n}"])) for n in order]
    assert by_name.split() == ["321", str(limits["RLIMIT_SIGPENDING"]), "-1", "-1"]
    size, rss, shr, txt, data = map(int, memory.split())
    # Size, resident, shared, text, -, data; resident pages are counted later (see proc_mem.stp).
    statm = said["statm"]
    assert (size, txt, data) == (statm[0], statm[3], statm[5]), (memory, statm)
    slack = 64 * os.cpu_count() + 64
    assert abs(rss - statm[1]) < slack * 3 and abs(shr - statm[2]) < slack * 2, (memory, statm)
    assert ids == f"{said['parent']} 1 {said['ppid']} 0"
    assert times.split()[0] == "1" and abs(int(times.split()[1]) - said["utime"] * 1000) < 200
    assert times.split()[2:] == ["1", "1"]
    assert ns == f"{said['pid']} {said['pid']} 0 {said['ppid']}"
    assert ancestors.startswith(f" python3({said['pid']}) {said['parent']}({said['ppid']})")


# --- processes, signals, sockets: the aliases --------------------------------------------------------------------------

EVENTS = """
import json, os, signal, socket, sys
got = []
signal.signal(signal.SIGUSR1, lambda *a: got.append(1))
children = []
for code in (3, 7):
    child = os.fork()
    if not child:
        if code == 7: os.execv("/bin/false", ["false"])
        os._exit(code)
    children.append(child)
    os.waitpid(child, 0)
os.kill(os.getpid(), signal.SIGUSR1)
a, b = socket.socketpair()
a.send(b"x" * 77); b.recv(200)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0))
u.sendto(b"y" * 1111, u.getsockname()); u.recv(4000)
print(json.dumps({"pid": os.getpid(), "children": children}), flush=True)
"""

EVENTS_SCRIPT = """
global ours
probe kprocess.create { if (pid() == target()) { ours[new_pid] = 1  println("create ", new_pid == new_tid, " ", new_pid) } }
probe scheduler.process_fork { if (parent_pid == target()) println("fork ", child_pid) }
probe scheduler.process_exit { if (pid in ours) println("ends ", pid) }
probe kprocess.exit { if (pid() in ours) println("exit ", WEXITSTATUS(code)) }
probe kprocess.exec { if (pid() in ours) println("exec ", filename) }
probe kprocess.exec_complete { if (pid() in ours) println("done ", success, " ", errno) }
probe signal.send { if (sig_pid == target() && sig == 10) println("send ", sig_name, " ", pid_name, " ", shared) }
probe signal.handle { if (pid() == target() && sig == 10) println("handle ", sig_name, " ", sig_code, " ", sa_handler_str(get_sa_handler(ka_addr)) != "default") }
probe signal.syskill { if (pid() == target()) println("kill ", sig_name, " ", pid_name, " ", sig_pid == target()) }
probe signal.do_action { if (pid() == target() && sig == 10) println("action ", sa_handler > 1, " ", sigset_mask_str(sa_mask)) }
probe socket.send { if (pid() == target()) println("sent ", size, " ", sock_fam_num2str(family), " ", sock_type_num2str(type), " ", success) }
probe socket.receive { if (pid() == target()) println("got ", size, " ", sock_fam_num2str(family), " ", sock_state_num2str(state)) }
# A packet of somebody else may leave while ours waits to run: 8 bytes of UDP, 20 of IP, 14 of Ethernet.
probe netdev.transmit { if (pid() == target() && length == 1111 + 42) println("packet ", dev_name, " ", length) }
"""


@pytest.mark.needs_bpf
def test_processes_signals_and_sockets(tmp_path):
    said, lines = traced(tmp_path, EVENTS, EVENTS_SCRIPT)
    first, second = said["children"]
    ordered = [line for line in lines if line.split()[0] in ("create", "fork", "ends", "exit")]
    for child, code in ((first, 3), (second, 1)):
        assert ordered.index(f"create 1 {child}") < ordered.index(f"ends {child}") and f"fork {child}" in ordered, lines
    assert [line for line in lines if line.startswith("exit")] == ["exit 3", "exit 1"]
    assert [line for line in lines if line.startswith(("exec", "done"))] == ['exec "/bin/false"', "done 1 0"]
    assert [line for line in lines if line.startswith(("kill", "send", "handle", "action 1"))] == [
        "action 1 ", "kill SIGUSR1 python3 1", "send SIGUSR1 python3 1", "handle SIGUSR1 0 1"], lines
    assert [line for line in lines if line.startswith(("sent", "got", "packet"))] == [
        "sent 77 LOCAL STREAM 1", "got 77 LOCAL CONNECTED",
        f"packet lo {1111 + 42}", "sent 1111 INET DGRAM 1", "got 1111 INET UNCONNECTED"], lines


@pytest.mark.needs_bpf
def test_many_new_elements_in_a_locked_part_of_the_kernel(tmp_path):
    """Where a signal is sent interrupts are off: the kernel makes no room for more elements then."""
    program = """
import json, os, signal
signal.signal(signal.SIGUSR1, lambda *a: 0)
os.kill(os.getpid(), signal.SIGUSR1)
print(json.dumps({"pid": os.getpid()}), flush=True)
"""
    said, lines = traced(tmp_path, program, """
global names
probe signal.send
{
	if (sig_pid != target() || sig != 10) next
	for (i = 0; i < 20; i++) names[pid() + i] = pid_name
}
probe end { foreach (p+ in names) println(p, names[p]) }""")
    assert lines == [f"{said['pid'] + i}python3" for i in range(20)], lines


@pytest.mark.needs_bpf
@pytest.mark.alone
def test_scheduler(tmp_path):
    """A process that sleeps is switched away from as often as the kernel counts, and woken each time.

    Not quite each time: the kernel runs no program at a tracepoint that is met on a CPU inside another program
    (trace_call_bpf, bpf_prog_active), as the timer's wakeup may be inside the one at a page fault; it counts none of
    them.
    """
    program = """
import json, resource, time
for i in range(40): time.sleep(0.002)
r = resource.getrusage(0)
print(json.dumps({"voluntary": r.ru_nvcsw, "other": r.ru_nivcsw}), flush=True)
"""
    said, lines = traced(tmp_path, program, """
global off, to, from, woken, faults
probe scheduler.cpu_off { if (pid() == target()) off++ }
probe scheduler.ctxswitch { if (next_pid == target() && next_task_name == "python3") to++  if (prev_pid == target()) from++ }
probe scheduler.wakeup { if (task_pid == target()) woken++ }
probe vm.pagefault { if (pid() == target()) faults++ }
probe end { printf("%d %d %d %d %d\\n", off, to, from, woken, faults) }""")
    off, to, away, woken, faults = map(int, lines[0].split())
    assert abs(off - said["voluntary"] - said["other"]) <= 20 and abs(off - away) <= 5 and abs(to - away) <= 5, (said, lines)
    assert 40 - 5 <= woken <= off + 5 and faults > 100, (said, lines)


# --- system calls -----------------------------------------------------------------------------------------------------

def machine_calls():
    path = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
    if os.uname().machine != "x86_64" or not os.path.exists(path):
        pytest.skip("needs x86-64's table of system calls")
    return {int(n): name for name, n in re.findall(r"#define __NR_(\w+) (\d+)", open(path).read())}


def test_names_of_system_calls():
    calls = machine_calls()
    script = "\n".join(f"probe begin({i}) {{ for (i = {i}; i < {i + 100}; i++) println(i, \" \", syscall_name(i)) }}"
                       for i in range(0, 460, 100))
    result = stap("-e", script + 'probe begin(1000) { println(syscall_num("openat"), " ", syscall_num("nosuch"), " ",'
                  ' syscall_name(-1), " ", syscall_name(9999)) exit() }')
    told = dict(line.split(" ", 1) for line in result.out.splitlines()[:-1])
    assert result.code == 0 and result.out.splitlines()[-1] == "257 -1 -1 9999", result
    assert {n: told[str(n)] for n in calls} == calls


def test_names_of_errors():
    """The kernel's: two of the C library's have the number of another."""
    headers = [f"/usr/include/asm-generic/errno{part}.h" for part in ("-base", "")]
    if not all(map(os.path.exists, headers)):
        pytest.skip("needs the kernel's headers")
    names = {int(n): name for path in headers for name, n in re.findall(r"#define\s+(E\w+)\s+(\d+)", open(path).read())}
    names.pop(133)      # not SystemTap's
    result = stap("-e", "probe begin { for (i = 1; i < 140; i++) println(errno_str(i), \" \", errno_str(-i)) exit() }")
    assert len(names) > 129 and result.out.splitlines() == [f"{name} {name}" for name in
                                                            (names.get(n, f"E#{n}") for n in range(1, 140))], result


@pytest.mark.needs_bpf
def test_any_system_call(tmp_path):
    """Calls that the program makes a known number of times."""
    calls = machine_calls()
    numbers = [number for number, name in calls.items() if name in ("getppid", "getpgrp", "umask", "sched_yield")]
    program = f"""
import ctypes, json
call = ctypes.CDLL(None).syscall
for i, n in enumerate({numbers}):
    for k in range(10 + i): call(n, 18)
call({numbers[0]})
print(json.dumps({{}}), flush=True)
"""
    _, lines = traced(tmp_path, program, """
global n, r
probe syscall_any { if (pid() == target()) n[name, syscall_nr]++ }
probe syscall_any.return { if (pid() == target() && (name == "getppid" || retval < 0)) r[name, retval == ppid()]++ }
probe end { foreach ([a, b] in n) println(a, " ", b, " ", n[a, b]) println("returned ", r["getppid", 1]) }""")
    counts = {line.split()[0]: line.split()[1:] for line in lines}
    for i, number in enumerate(numbers):
        times = 10 + i + (i == 0)
        assert counts[calls[number]] == [str(number), str(times)], lines
    assert counts["returned"] == [counts["getppid"][1]], lines


RARE = """
import ctypes, json, os, socket, sys, time
os.sched_getscheduler(0)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.setpriority(os.PRIO_PROCESS, 0, 5)
os.mknod("fifo-here", 0o10644)
os.setxattr("fifo-here", b"user.x", b"y") if False else None
os.sync()
os.eventfd(3, os.EFD_CLOEXEC)
try: os.getxattr("/nosuch", "user.a")
except OSError: pass
libc = ctypes.CDLL(None)
libc.semget(77, 2, 0o1600)
libc.msync(0, 0, 4)
os.unlink("fifo-here")
print(json.dumps({}), flush=True)
"""


@pytest.mark.needs_bpf
def test_rare_system_calls(tmp_path):
    """Names, numbers and words as the program gave them."""
    _, lines = traced(tmp_path, RARE.replace('"fifo-here"', repr(str(tmp_path / "fifo-here"))), """
probe syscall.sched_getscheduler, syscall.sched_setscheduler, syscall.setpriority, syscall.mknodat, syscall.eventfd,
      syscall.getxattr, syscall.semget, syscall.msync { if (pid() == target()) println(name, "(", argstr, ")") }
probe syscall.getxattr.return { if (pid() == target()) println(name, " ", retstr) }""")
    lines = [re.sub(r"0x[0-9a-f]{6,}", "P", line) for line in lines]
    assert [line for line in lines if not line.startswith("mknod")] == [
        "sched_getscheduler(0)", "sched_setscheduler(0, SCHED_BATCH, P)", "setpriority(PRIO_PROCESS, 0, 5)", "eventfd2(3, EFD_CLOEXEC)",
        'getxattr("/nosuch", "user.a", P, 128)', "getxattr -2 (ENOENT)", "semget(77, 2, IPC_CREAT|0600)", "msync(0x0, 0, MS_SYNC)"], lines


@pytest.mark.needs_bpf
def test_entry_values_at_the_return_of_system_calls(tmp_path):
    program = """
import ctypes, json, time
call = ctypes.CDLL(None).syscall
begin = time.time()
time.sleep(0.05)
slept = (time.time() - begin) * 1000 + 1
call(95, 0o22)
call(95, 0o77)
call(3, 99)
print(json.dumps({"slept": slept}), flush=True)
"""
    told, lines = traced(tmp_path, program, """
probe nd_syscall.umask.return { if (pid() == target()) println("mask ", @entry($arg1), " ", @entry(int_arg(1)), " ", returnval()) }
probe syscall.close.return { if (pid() == target() && retval) println(returnval() == retval, " ", returnval()) }
probe syscall_any.return { if (pid() == target() && name == "close" && retval < 0) println("any ", returnval()) }
probe syscall.clock_nanosleep.return { if (pid() == target()) println("slept ", gettimeofday_ms() - @entry(gettimeofday_ms())) }""")
    assert re.fullmatch("slept [0-9]+", lines[0]) and 49 <= int(lines[0].split()[1]) <= told["slept"] and lines[1].startswith("mask 18 18 ") and lines[2] == "mask 63 63 18", lines
    assert sorted(lines[3:]) == ["1 -9", "any -9"], lines


FILES = """
import json, os, sys
path = sys.argv[0] + ".data"
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, b"z" * 321)
os.pread(fd, 1000, 21)
try: os.read(99, 77)
except OSError: pass
r, w = os.pipe()
os.set_blocking(r, False)
try: os.read(r, 55)
except OSError: pass
st = os.fstat(fd)
print(json.dumps({"path": path, "ino": st.st_ino, "dev": [os.major(st.st_dev), os.minor(st.st_dev)], "pipe": os.fstat(r).st_ino}), flush=True)
"""


@pytest.mark.needs_bpf
def test_reading_and_writing_of_files(tmp_path):
    """A descriptor that is not open reads nothing; what goes wrong behind it has its error."""
    said, lines = traced(tmp_path, FILES, """
global ours
probe vfs.write { if (pid() == target() && bytes_to_write == 321)
	println(name, " ", fullpath_struct_file(task_current(), file), " ", ino, " ", dev >> 20, " ", dev & 0xfffff) }
probe vfs.read { if (pid() == target()) ours = bytes_to_read == 77 || bytes_to_read == 55 ? ours + 1 : ours }
probe vfs.read.return { if (pid() == target() && (bytes_to_read == 1000 || bytes_to_read == 55))
	println(name, " ", bytes_read, " ", ret, " ", error, " ", error_str, " ", ino, " ", devname == "N/A") }
probe end { println(ours) }""")
    major, minor = said["dev"]
    assert lines[0] == f"vfs.write {said['path']} {said['ino']} {major} {minor}", lines
    assert re.sub(r" \d$", "", lines[1]) == f"vfs.read 300 300 0  {said['ino']}", lines
    assert lines[2:] == [f"vfs.read 0 -11 -11 EAGAIN {said['pipe']} 1", "1"], lines


# --- other words ------------------------------------------------------------------------------------------------------

def test_words_of_sockets():
    """Python's socket module has the numbers, the C library the protocols."""
    import socket
    families = [("INET", socket.AF_INET), ("INET6", socket.AF_INET6), ("NETLINK", socket.AF_NETLINK), ("PACKET", socket.AF_PACKET),
                ("KEY", socket.AF_KEY), ("TIPC", socket.AF_TIPC), ("BLUETOOTH", socket.AF_BLUETOOTH)]
    types = [("STREAM", socket.SOCK_STREAM), ("SEQPACKET", socket.SOCK_SEQPACKET), ("RAW", socket.SOCK_RAW)]
    protocols = []
    for line in subprocess.run(["getent", "protocols"], capture_output=True, text=True).stdout.splitlines():
        name, number = line.split()[:2]
        if int(number) < 138:
            protocols.append((name.upper(), int(number)))
    flags = [getattr(socket, f"MSG_{name}") for name in ("OOB", "PEEK", "DONTWAIT", "NOSIGNAL", "WAITALL")]
    options = [(name, getattr(socket, name)) for name in ("TCP_NODELAY", "TCP_CORK", "TCP_INFO", "TCP_CONGESTION", "TCP_USER_TIMEOUT")]
    ipv6 = [(name, getattr(socket, name)) for name in ("IPV6_V6ONLY", "IPV6_UNICAST_HOPS", "IPV6_RECVPKTINFO", "IPV6_HOPLIMIT")]
    each = lambda rows, f, g: "".join(f'println({f}({n}), " ", {g}("{name}"))\n' for name, n in rows)
    result = stap("-e", f"""
probe begin {{ {each(families, "sock_fam_num2str", "sock_fam_str2num")} {each(types, "sock_type_num2str", "sock_type_str2num")} }}
probe begin(1) {{
  println(sock_fam_num2str(99), sock_fam_str2num("NET"), sock_type_num2str(9), sock_prot_num2str(61), sock_prot_str2num("X"))
  println(msg_flags_num2str({sum(flags)}))
  {"".join(f"println(tcp_sockopt_str({n}))" + chr(10) for _, n in options)}
  {"".join(f"println(tcp_ipv6_sockopt_str({n}))" + chr(10) for _, n in ipv6)}
  println(tcp_sockopt_str(99), " ", tcp_sockstate_str(1), " ", tcp_sockstate_str(10), " ", ip_ntop({int.from_bytes(socket.inet_aton("127.0.0.1"), "little")}))
}}
probe begin(2) {{ for (i = 0; i < 138; i++) println(i, " ", sock_prot_num2str(i)) exit() }}""")
    lines = result.out.splitlines()
    want = [f"{name} {n}" for name, n in families + types]
    want += ["UNDEF-1UNDEFUNDEF-1", "OOB|PEEK|DONTWAIT|WAITALL|NOSIGNAL"] + [name for name, _ in options + ipv6]
    want.append("UNDEF_SOCKOPT(99) TCP_ESTABLISHED TCP_LISTEN 127.0.0.1")
    assert result.code == 0 and lines[:len(want)] == want, result
    told = dict(line.split(" ") for line in lines[len(want):])
    # Two dozen had their names changed in the list since.
    same = [number for name, number in protocols if told[str(number)].rstrip("-") == name]
    assert len(told) == 138 and len(same) > len(protocols) // 2, (told, protocols)


def test_modes_are_pythons():
    import stat
    names = {"ISREG": stat.S_IFREG, "ISDIR": stat.S_IFDIR, "ISLNK": stat.S_IFLNK, "ISCHR": stat.S_IFCHR, "ISBLK": stat.S_IFBLK,
             "ISFIFO": stat.S_IFIFO, "ISSOCK": stat.S_IFSOCK}
    result = stap("-e", "probe begin { " + " ".join(f"println(ftype({mode | 0o640}))" for mode in names.values()) + " exit() }")
    assert result.out.splitlines() == [f"0{mode | 0o640:o} ({name})" for name, mode in names.items()], result


# --- strings and numbers ----------------------------------------------------------------------------------------------

def bits(number):
    return struct.unpack("<q", struct.pack("<d", number))[0]


def number(value):
    return struct.unpack("<d", struct.pack("<q", value))[0]


def one(rng):
    kind = rng.random()
    if kind < 0.3:
        return number(rng.getrandbits(64) - (1 << 63))
    if kind < 0.4:
        return rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308])
    if kind < 0.5:
        return number(rng.getrandbits(52))
    return rng.choice([float(rng.randint(-20, 20)), rng.uniform(-1, 1) * 2.0 ** rng.randint(-60, 60)])


def quotient(x, y):
    if y:
        return x / y
    return math.nan if not x or math.isnan(x) else math.copysign(math.inf, math.copysign(1, x) * math.copysign(1, y))


def or_nan(f, *args):
    try:
        return f(*args)
    except ValueError:
        return math.nan


def whole(x, rounding):
    if not math.isfinite(x) or abs(x) >= 2 ** 63:
        return -2 ** 63
    return int(decimal.Decimal(x).to_integral_value(rounding, decimal.Context(prec=1200)))


def test_floating_point_is_pythons():
    rng = random.Random(20261121)
    pairs = [(one(rng), one(rng)) for _ in range(70)]
    pairs += [(x, x * (1 + 2 ** -52)) for x, _ in pairs[:10]]
    modes = [decimal.ROUND_HALF_EVEN, decimal.ROUND_DOWN, decimal.ROUND_FLOOR, decimal.ROUND_CEILING, decimal.ROUND_HALF_UP]
    operations = [
        ("fp_add(x, y)", lambda x, y: x + y), ("fp_sub(x, y)", lambda x, y: x - y), ("fp_mul(x, y)", lambda x, y: x * y),
        ("fp_div(x, y)", quotient), ("fp_rem(x, y)", lambda x, y: or_nan(math.remainder, x, y)),
        ("fp_sqrt(x) + 0 * y", lambda x, y: or_nan(math.sqrt, x)), ("long_to_fp(x) + 0 * y", lambda x, y: float(bits(x))),
        ("fp32_to_fp64(x) + 0 * y", lambda x, y: struct.unpack("<f", struct.pack("<I", bits(x) & 0xffffffff))[0]),
        ("fp_eq(x, y) * 4 + fp_le(x, y) * 2 + fp_lt(x, y)", lambda x, y: (x == y) * 4 + (x <= y) * 2 + (x < y))]
    operations += [(f"fp_to_long(x, {i}, 0) + 0 * y", lambda x, y, mode=mode: whole(x, mode)) for i, mode in enumerate(modes)]
    script = "global a, b\nprobe begin(0) {" + "".join(
        f" a[{i}] = {bits(x)} b[{i}] = {bits(y)}" for i, (x, y) in enumerate(pairs)) + "}\n" + "".join(
        f"probe begin({k + 1}) {{ for (i = 0; i < {len(pairs)}; i++) {{ x = a[i] y = b[i] println({text}) }} }}\n"
        for k, (text, _) in enumerate(operations))
    result = stap("-g", "--suppress-time-limits", "-e", script + "probe begin(99) { exit() }")
    told = iter(map(int, result.out.split()))
    for text, function in operations:
        for x, y in pairs:
            got, want = next(told), function(x, y)
            if isinstance(want, float):
                assert math.isnan(number(got)) if math.isnan(want) else got == bits(want), (text, x, y, number(got), want)
            else:
                assert got == want, (text, x, y, got, want)


def test_floating_point_in_words():
    numbers = [0.0, -0.0, 0.5, 1.5, 2.5, 999.995, 0.999999, 1e-9, 3.14, math.inf, 123456789.987654321, 9e18, -7.25]
    rng = random.Random(5)
    numbers += [rng.uniform(-1e6, 1e6) for _ in range(20)]
    words = ["0", "-0", "3.14", "0.1", "-99.5", "0.000001", "98765432109876543", "5.", "+.5"]
    words += ["%.*f" % (rng.randint(0, 12), rng.uniform(-1e4, 1e4)) for _ in range(20)]
    result = stap("-g", "--suppress-time-limits", "-e", "global v, t probe begin {" + "".join(
        f" v[{i}] = {bits(x)}" for i, x in enumerate(numbers)) + "".join(f' t[{i}] = "{x}"' for i, x in enumerate(words)) + f"""
        for (i = 0; i < {len(numbers)}; i++)
            println(fp_to_string(v[i], 0), " ", fp_to_string(v[i], 5), " ", fp_to_string(v[i], 12))
        for (i = 0; i < {len(words)}; i++) println(string_to_fp(t[i]))
        try {{ println(string_to_fp("1x")) }} catch (why) {{ println(why) }}
        exit() }}""")
    want = [" ".join("%.*f" % (digits, x) for digits in (0, 5, 12)) for x in numbers]
    want += [str(bits(float(x))) for x in words] + ["invalid format"]
    assert result.out.splitlines() == want, result


TEXTS = """
import ctypes, json
text = "h\\u00e9llo \\u20ac \\U0001f600 end"
keep = [ctypes.create_string_buffer(data) for data in (
    text.encode("utf-16-le") + b"\\0\\0", text.encode("utf-32-le") + b"\\0\\0\\0\\0", b'ab\\0\\0c\\n"\\x01z' + b"\\0" * 8,
    b"\\x00\\xd8a\\0\\0\\0", ("w" * 300).encode("utf-16-le") + b"\\0\\0")]
call = ctypes.CDLL(None).syscall
call.argtypes = [ctypes.c_long] * 7
print(json.dumps({"text": text}), flush=True)
call(95, *[ctypes.addressof(x) for x in keep], 0)
"""


@pytest.mark.needs_bpf
def test_strings_of_other_encodings(tmp_path):
    said, lines = traced(tmp_path, TEXTS, r"""
probe kernel.syscall("umask")
{
	if (pid() != target()) next
	println(user_string_utf16($arg1)) println(user_string_utf32($arg2))
	println(user_string_quoted_utf16($arg1)) println(user_string_quoted_utf32(4096))
	println(user_string_utf16($arg4, "bad"), " ", user_string2_utf32(16, "nothing"), " ", strlen(user_string_utf16($arg5)))
	try { println(user_string_utf16($arg4)) } catch (why) { println(substr(why, 0, 31)) }
	println(user_buffer_quoted($arg3, 11, 100)) println(user_buffer_quoted($arg3, 11, 10), user_buffer_quoted(16, 12, 10))
	println(user_string_n_quoted($arg3, 1, 100), kernel_or_user_string_quoted($arg3))
	println(kernel_buffer_quoted(& @cast(task_current(), "task_struct", "kernel")->comm, 9))
}""")
    quoted = "".join(chr(b) if b < 128 else f"\\{b:o}" for b in said["text"].encode())
    assert lines == [said["text"], said["text"], f'"{quoted}"', "0x1000", "bad nothing 300", "invalid UTF-16 character U+D800",
                     r'"ab\000\000c\n\"\001z\000\000"', r'"ab\0"...0x10', '"a""ab"', r'"python3\000\000"'], lines


def test_queues():
    """Two requests, one after the other, by a clock of the script's own."""
    result = stap("-e", r"""
global clock
function qs_time:long() { return clock }
probe begin
{
	clock = 1000
	qsq_start("q")
	qs_wait("q") qs_wait("q")
	clock += 100  qs_run("q")
	clock += 300  qs_done("q") qs_run("q")
	clock += 200  qs_done("q")
	clock += 400
}
probe begin(1)
{
	println(qsq_utilization("q", 100), " ", qsq_blocked("q", 100), " ", qsq_wait_queue_length("q", 1000), " ",
		qsq_service_time("q", 1), " ", qsq_wait_time("q", 1), " ", qsq_throughput("q", 1000000))
}
probe begin(2)
{
	qsq_print("q")
	exit()
}""")
    # Of 1000: served in 500, waited for in 400; 100 with two that wait, 300 with one; 2 done.
    assert result.out.splitlines() == ["50 40 500 250 500 2000",
                                       "q: 2000.000 ops/s, 0.500 qlen, 500 await, 250 svctm, 40% wait, 50% util"], result


def test_metrics_and_arguments():
    result = stap("-e", r"""
global hits, sizes
probe begin { hits["a \"b\"", 3] = 4  sizes[7] = 5  println(argc, argv[1], argv[2]) exit() }
probe prometheus { @prometheus_dump_array2(hits, "hits", "name", "n") }
probe end { @prometheus_dump_array1_map_unquoted(sizes, "size", "x", sprint, sprint) }""", "one", "2")
    assert result.out.splitlines() == ["2one2", r'hits{name="a \"b\"",n="3"} 4', "size{x=7} 5"], result


def test_locals_of_functions_are_their_own():
    """The script's globals have the names of variables in functions of the tapset."""
    result = stap("-e", 'global name, at, i[4], m, text = "mine" probe begin { i[1] = 2  m = 3 name = "x" at = 9\n'
                  'println(signal_str(9), ftype(0100644), fp_to_long(long_to_fp(m), 0, 0), name, at, i[1], m, text, sigset_mask_str(5)) exit() }')
    assert result.out == "KILL0100644 (ISREG)3x923mine1,3\n", result


@pytest.mark.skipif(not os.access("/usr/bin/python3", os.X_OK), reason="the system has no Python")
def test_python_behind_a_script(tmp_path):
    """Where python3 in PATH is a script that starts one, as pyenv's, the system's has the markers that are listed."""
    for name in ("python3", "python"):
        (tmp_path / name).write_text("#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n")
        (tmp_path / name).chmod(0o755)
    result = harness.run([harness.STAP, "-L", "python.*.*"], env={**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert result.code == 0 and "python.gc.start generation:long" in result.out, result
