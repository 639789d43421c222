"""What of SystemTap's tapset few scripts use: each function and alias once, with the traced program, /proc or strace as witness."""
import os
import re
import resource
import shutil
import socket
import subprocess

import pytest

import harness
from tapset_test import ENV, PYTHON, stap, traced

pytestmark = pytest.mark.needs_bpf


# --- functions --------------------------------------------------------------------------------------------------------

def test_control_sequences():
    """ECMA-48's, and of the two that are not in it the tapset reference's."""
    calls = {"ansi_clear_screen()": "\033[1;1H\033[J", "ansi_set_color(31)": "\033[31m", "ansi_set_color2(31, 42)": "\033[42;31m",
             "ansi_set_color3(31, 42, 1)": "\033[42;31;1m", "ansi_reset_color()": "\033[0;0m", "ansi_new_line()": "\n",
             "ansi_cursor_move(3, 4)": "\033[4;3H", "ansi_cursor_hide()": "\033[>5I", "ansi_cursor_save()": "\033[s",
             "ansi_cursor_restore()": "\033[u", "ansi_cursor_show()": "\033[>5h"}
    result = stap("-e", "probe begin { " + " print(\"|\") ".join(calls) + " exit() }")
    assert result.out == "|".join(calls.values()), result


PROCESS = """
import ctypes, json, os, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
call = ctypes.CDLL(None).syscall
clock = time.monotonic_ns()
call(95, 0o22)
print(json.dumps({"clock": [clock, time.monotonic_ns()], "ids": [os.getpid(), os.getpgrp(), os.getsid(0), os.geteuid(), os.getgid(),
      os.getegid()], "cpu": min(os.sched_getaffinity(0)), "parent": os.getppid(), "exe": os.readlink("/proc/self/exe")}), flush=True)
"""


def test_process_and_clocks(tmp_path):
    said, lines = traced(tmp_path, PROCESS, r"""
probe kernel.syscall("umask")
{
	if (pid() != target()) next
	println(ns_tid(), " ", ns_pgrp(), " ", ns_sid(), " ", ns_euid(), " ", ns_gid(), " ", ns_egid())
	println(local_clock_ns(), " ", ktime_get_ns(), " ", local_clock_us() * 1000, " ", local_clock_ms() * 1000000, " ",
		local_clock_s() * 1000000000)
	println(arch_bytes(), " ", cpuid(), " ", cpu(), " ", stp_pid(), " ", remote_uri(), "|", user_mode(), " ", HZ(), " ", jiffies() > 0)
	println(current_exe_file() != 0, " ", task_time_string())
	println(get_cycles() > 0, " ", target_set_pid(pid()))
}""")
    first, last = said["clock"]
    assert lines[0].split() == [str(n) for n in said["ids"]], (said, lines)
    at, again, *coarse = map(int, lines[1].split())
    assert first <= at <= again <= last, (said, lines)
    for ns, unit in zip(coarse, (1000, 10 ** 6, 10 ** 9)):
        assert first - unit < ns <= last and ns % unit == 0, (said, lines)
    words = lines[2].split()
    assert words[:4] == ["8", str(said["cpu"]), str(said["cpu"]), str(said["parent"])], (said, lines)
    assert words[4] in ("|0", "|1") and int(words[5]) in (100, 250, 300, 1000) and words[6] == "1", lines
    assert re.match(r"1 usr: \S+, sys: \S+, total: \S+", lines[3]) or lines[3].startswith("1 "), lines
    assert lines[4] == "1 1", lines


def test_names_of_limits_and_states():
    limits = {name[7:]: getattr(resource, name) for name in dir(resource) if re.match(r"RLIMIT_(?!OFILE)", name)}
    states = ["FREE", "UNCONNECTED", "CONNECTING", "CONNECTED", "DISCONNECTING"]         # include/uapi/linux/net.h
    types = {"STREAM": socket.SOCK_STREAM, "DGRAM": socket.SOCK_DGRAM}
    script = "".join(f'println(rlimit_from_str("RLIMIT_{name}")) ' for name in limits)
    script += "".join(f'println(sock_state_str2num("{name}")) ' for name in states)
    script += "".join(f'println(sock_type_str2num("{name}")) ' for name in types)
    result = stap("-e", f"probe begin {{ {script} println(AF_INET(), AF_INET6()) exit() }}")
    want = [*limits.values(), 0, 1, 2, 3, 4, *types.values()]
    assert result.out.split() == [*map(str, want), f"{int(socket.AF_INET)}{int(socket.AF_INET6)}"], result


def test_time_zone():
    env = dict(ENV, TZ="XYZ-3:30")
    result = harness.stap("-w", "-e", 'probe begin { println(tz_gmtoff(), " ", tz_name(), " ", tz_ctime(0)) exit() }', env=env)
    assert result.out == "-12600 XYZ Thu Jan  1 03:30:00 1970 XYZ\n", result


def test_stopwatches():
    """What they show lies between what the script's own clock shows inside and outside of it."""
    result = stap("-e", r"""
global outer, inner, at
probe begin { outer = ktime_get_ns() start_stopwatch("a") inner = ktime_get_ns() }
probe timer.ms(30)
{
	if (++at > 1) next
	inner = ktime_get_ns() - inner  stop_stopwatch("a")  outer = ktime_get_ns() - outer
	n = read_stopwatch_ns("a")
	println(inner <= n, n <= outer, read_stopwatch_us("a") == n / 1000, read_stopwatch_ms("a") == n / 1000000, read_stopwatch_s("a"))
	delete_stopwatch("a")
	println(read_stopwatch_ns("a"))
	exit()
}""")
    assert result.out == "11110\n0\n", result


def test_what_a_regular_expression_matched():
    result = stap("-e", 'probe begin { if ("number 42!" =~ "[0-9]+") println(matched_str(), " ", ngroups()) asmlinkage() fastcall() regparm(0) exit() }')
    assert result.out.startswith("42 "), result


CHAIN = """
#define F __attribute__((noinline))
F void leaf(int n) { __asm__ volatile("" :: "r"(n)); }
F void middle(int n) { leaf(n); __asm__ volatile(""); }
F void outer(int n) { middle(n); __asm__ volatile(""); }
int main(void) { outer(3); return 0; }
"""


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    path = tmp_path_factory.mktemp("stack") / "chain"
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-x", "c", "-", "-o", path], input=CHAIN, text=True, check=True)
    return path


STACKS = ("print_ubacktrace_brief()", "print_usyms(ubacktrace())", "print_ustack(ubacktrace())", "println(sprint_ubacktrace())",
          "println(sprint_usyms(ubacktrace()))", "println(sprint_ustack(ubacktrace()))")


@pytest.mark.parametrize("call", STACKS)
def test_stacks(chain, call):
    result = stap("-e", f'probe process("{chain}").function("leaf") {{ {call} }}', "-c", str(chain))
    assert re.findall(r"\b(leaf|middle|outer|main)\b", result.out) == ["leaf", "middle", "outer", "main"], result


def test_context_of_a_probe(chain):
    result = stap("-e", f"""probe process("{chain}").function("middle") {{ println(module_name(), " ", probemod(), " ", probe_type()) print_backtrace() }}""",
                  "-c", str(chain))
    assert result.code == 0 and str(chain) in result.out.splitlines()[0], result


# --- aliases: what happens on the machine ------------------------------------------------------------------------------

def sums(path, pattern):
    """The numbers of lines that match, as one."""
    return sum(sum(map(int, re.findall(r"\s(\d+)(?=\s)", line))) for line in open(path) if re.match(pattern, line))


def test_interrupts_are_procs():
    """Between counts that /proc has before and after; each entry has an exit."""
    slack = 2 * os.cpu_count()      # what begins or ends between the two
    soft = sums("/proc/softirqs", r"\s*\w+:")
    result = stap("-e", """
global n
probe softirq.entry { n[0]++ } probe softirq.exit { n[1]++ }
probe irq_handler.entry { n[2]++ } probe irq_handler.exit { n[3]++ }
probe timer.ms(300) { exit() }
probe end { println(n[0], " ", n[1], " ", n[2], " ", n[3]) }""")
    entries, exits, hard, hard_exits = map(int, result.out.split())
    assert 0 < entries <= sums("/proc/softirqs", r"\s*\w+:") - soft and abs(entries - exits) <= slack, result
    assert abs(hard - hard_exits) <= slack, result


MEMORY = """
import json, os
r, w = os.pipe()
for i in range(50):
    os.close(os.open("/dev/null", 0))
print(json.dumps({}), flush=True)
"""


def test_memory_of_the_kernel(tmp_path):
    """To open a file takes memory of a cache, and to make a pipe some of no cache; what is freed was given."""
    _, lines = traced(tmp_path, MEMORY, """
global n
probe vm.kmalloc, vm.kmalloc_node, vm.kmem_cache_alloc, vm.kmem_cache_alloc_node, vm.kfree, vm.kmem_cache_free
{
	if (pid() == target() && ptr) n[name]++
}
probe end { foreach (name+ in n) println(name, " ", n[name]) }""")
    counts = {name: int(n) for name, n in map(str.split, lines)}
    assert sorted(counts) == ["kfree", "kmalloc", "kmalloc_node", "kmem_cache_alloc", "kmem_cache_alloc_node", "kmem_cache_free"], lines
    assert counts["kmem_cache_alloc"] >= 50 and abs(counts["kmalloc"] - counts["kmalloc_node"]) <= 1 and counts["kfree"] >= 1, lines


WORK = """
import json, os
master, slave = os.openpty()
os.write(master, b"x\\n")
os.read(slave, 1)
fd = os.open(FILE, os.O_CREAT | os.O_WRONLY)
for i in range(20):
    os.pwrite(fd, b"x" * 4096, i * 4096)
    os.fsync(fd)
print(json.dumps({}), flush=True)
"""


def test_work_and_disks(tmp_path):
    """What goes through a terminal is work that is queued and done.  Both aliases of a request see each."""
    _, lines = traced(tmp_path, WORK.replace("FILE", repr(str(tmp_path / "file"))), """
global n
probe workqueue.insert { n["insert"]++ } probe workqueue.execute { n["execute"]++ }
probe ioblock.request { n["request"]++ } probe ioblock_trace.request { n["request too"]++ }
probe ioblock.end { n["end"]++ } probe ioblock_trace.end { n["end too"]++ }
probe end { println(n["insert"], " ", n["execute"], " ", n["request"] - n["request too"], " ", n["end"] - n["end too"]) }""")
    inserted, executed, requests, ends = map(int, lines[0].split())
    slack = 2 * os.cpu_count()
    assert inserted and executed and abs(requests) <= slack and abs(ends) <= slack, lines


SCHEDULED = """
import json, os, signal, time
cpus = sorted(os.sched_getaffinity(0))
for i in range(10):
    if not os.fork():
        os._exit(0)
    os.wait()
for i in range(6):
    os.sched_setaffinity(0, {cpus[i % len(cpus)]})
signal.signal(signal.SIGUSR1, lambda *a: None)
for i in range(7):
    os.kill(os.getpid(), signal.SIGUSR1)
print(json.dumps({"moves": 5 if len(cpus) > 1 else 0}), flush=True)
"""


def test_scheduler(tmp_path):
    said, lines = traced(tmp_path, SCHEDULED, """
global n
probe scheduler.process_wait { if (pid() == target()) n["wait"]++ }
probe scheduler.process_free, kprocess.release, scheduler.wait_task { }
probe scheduler.wakeup_new { if (pid() == target()) n["new"]++ }
probe scheduler.migrate { if (pid == target()) n["migrate"]++ }
probe scheduler.signal_send { if (pid == target() && signal_number == 10) n["signal"]++ }
probe tp_kprocess.create, dw_kprocess.create { if (pid() == target()) n["create"]++ }
probe end { println(n["wait"], " ", n["new"], " ", n["migrate"], " ", n["signal"], " ", n["create"]) }""")
    wait, new, moved, signals, made = map(int, lines[0].split())
    assert wait >= 10 and new == 10 and moved >= said["moves"] and signals == 7 and made == 20, (said, lines)


PACKETS = """
import json, socket
a, b = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for i in range(2))
b.bind(("127.0.0.1", 0))
for i in range(25):
    a.sendmsg([b"x" * 321], [], 0, b.getsockname())
    b.recvmsg(1000)
print(json.dumps({}), flush=True)
"""


def test_packets(tmp_path):
    """Each goes out through the loopback device and comes in there: 321 bytes behind the headers of UDP and IP."""
    _, lines = traced(tmp_path, PACKETS, """
global n
probe netdev.hard_transmit { if (pid() == target() && dev_name == "lo") n["out"]++ }
probe netdev.rx { if (pid() == target() && length == 349) n["rx"]++ }
probe netdev.receive { if (pid() == target() && length == 349) n["in"]++ }
probe socket.sendmsg.return { if (pid() == target() && size == 321) n["sent"]++ }
probe socket.recvmsg.return { if (pid() == target() && size == 321) n["got"]++ }
probe end { println(n["out"], " ", n["rx"], " ", n["in"], " ", n["sent"], " ", n["got"]) }""")
    out, rx, came, sent, got = map(int, lines[0].split())
    assert out >= 25 and rx == 25 and came <= 25 and sent == 25 and got == 25, lines


SIGNALS = """
import ctypes, json, os, signal
call = ctypes.CDLL(None).syscall
for i in range(3): os.kill(os.getpid(), 0)
for i in range(4): call(200, os.getpid(), 0)
for i in range(5): call(234, os.getpid(), os.getpid(), 0)
for i in range(6): signal.sigpending()
for i in range(60): signal.pthread_sigmask(signal.SIG_BLOCK, [])
for i in range(80): signal.signal(signal.SIGUSR1, signal.SIG_IGN)
w = os.open("/dev/null", os.O_WRONLY)
for i in range(7): os.write(w, b"x" * 1234)
print(json.dumps({}), flush=True)
"""


def test_calls_about_signals(tmp_path):
    """By how often the program makes them; of two also what the interpreter's start makes."""
    names = ("signal.syskill", "signal.systkill", "signal.systgkill", "signal.pending", "signal.procmask", "signal.do_action")
    returns = ("signal.syskill.return", "signal.systkill.return", "signal.systgkill.return", "signal.pending.return",
               "signal.procmask.return", "signal.do_action.return")
    probes = "".join(f'probe {name} {{ if (pid() == target()) n["{name}"]++ }}\nprobe {back} {{ if (pid() == target()) r["{name}"]++ }}\n'
                     for name, back in zip(names, returns))
    _, lines = traced(tmp_path, SIGNALS, f"""global n, r
{probes}
probe vfs.write.return {{ if (pid() == target() && bytes_written == 1234) n["written"]++ }}
probe end {{ {" ".join(f'println(n["{name}"], " ", r["{name}"])' for name in names)} println(n["written"]) }}""")
    assert lines[:4] == ["3 3", "4 4", "5 5", "6 6"] and lines[6] == "7", lines
    for line, least in zip(lines[4:6], (60, 80)):
        calls, returns = map(int, line.split())
        assert calls == returns >= least, lines


ALL = ("python.audit", "python.line", "python.gc.start", "python.gc.done", "python.import.start", "python.import.done",
       "python.function.entry", "python.function.return")


@pytest.mark.interps("3.9", "3.13")
def test_all_aliases_of_python(interp):
    script = ("import gc, json, sys\ndef f():\n    pass\nfor i in range(5):\n    f()\nfor i in range(4):\n    gc.collect()\n"
              "sys.audit('own', 1)\n")
    result = stap("-e", "global n\n" + "".join(f'probe {name} {{ n["{name}"]++ }}\n' for name in ALL) +
                  "probe end { " + " ".join(f'println(n["{name}"])' for name in ALL) + " }", "-c", interp.command(script))
    audit, line, start, done, imports, imported, entries, returns = map(int, result.out.split())
    assert audit >= 1 and line >= 12 and start == done >= 4 and imports == imported >= 1 and entries >= 6 and returns >= 6, result


def test_prefixes_of_system_calls(tmp_path):
    """The ways to find a system call that SystemTap has are one."""
    prefixes = ("nd_syscall", "nd1_syscall", "nd2_syscall", "dw_syscall", "tp_syscall")
    _, lines = traced(tmp_path, "import json, os\nfor i in range(9): os.umask(0o22)\nprint(json.dumps({}), flush=True)\n",
                      "global n\n" + "".join(f'probe {p}.umask {{ if (pid() == target()) n["{p}"]++ }}\n' for p in prefixes) +
                      "probe end { " + " ".join(f'println(n["{p}"])' for p in prefixes) + " }")
    assert lines == ["9"] * 5, lines


def test_calls_of_other_programs(tmp_path):
    """A call that no program makes here is named without harm, even with -W; a name that is nobody's is an error."""
    script = 'probe syscall.mmap2 { println(name, argstr, pgoffset) } probe syscall.%s.return { } probe begin { println("on") exit() }'
    for options in [], ["-W"]:
        result = harness.stap(*options, "-e", script % "sigpending")
        assert (result.out, result.code) == ("on\n", 0) and "never fires" in result.err, result
    assert stap("-p2", "-e", script % "sigpendant").code == 1
    assert stap("-p2", "-e", "probe syscall.mmap2 { exit() }").code == 1


def test_warnings_as_errors():
    script = "probe begin { printf(\"%d\", x) exit() }"
    assert stap("-p2", "-e", script).code == 0
    result = harness.stap("-W", "-p2", "-e", script)
    assert result.code == 1 and "never-assigned local variable 'x'" in result.err and "leave out -W" in result.err, result


CALLS = """
import json, os, signal, socket
port = {}
for family, name in ((socket.AF_INET, "127.0.0.1"), (socket.AF_UNIX, "\\0dtap-%d" % os.getpid())):
    with socket.socket(family) as s:
        s.bind((name, 0) if family == socket.AF_INET else name)
        port[family.name] = s.getsockname()[1]
        if family == socket.AF_INET:
            s.listen()
            with socket.socket() as other:
                other.connect(s.getsockname())
ends = os.pipe()
status = []
for how in (7, signal.SIGKILL, signal.SIGSTOP):
    child = os.fork()
    if not child:
        os.kill(os.getpid(), how) if how != 7 else os._exit(7)
    status.append(os.waitpid(child, os.WUNTRACED)[1])
    if os.WIFSTOPPED(status[-1]):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
print(json.dumps({"port": port["AF_INET"], "ends": ends, "stopped": status[2]}), flush=True)
"""


def test_names_of_calls(tmp_path):
    """Addresses beside their texts, those of sockets in parts, and what a call has stored when it returns."""
    said, lines = traced(tmp_path, CALLS, r"""
probe syscall.bind, syscall.connect {
	if (pid() == target() && uaddr_af != "AF_UNIX") println(name, " ", uaddr_af, " ", uaddr_ip, " ", uaddr_ip_port)
	else if (pid() == target()) println(name, " ", uaddr_af, uaddr_ip, uaddr_ip_port)
}
probe syscall.pipe.return { if (pid() == target()) println(name == "pipe2" || name == "pipe", " ", pipe0, " ", pipe1, " ", fildes_uaddr != 0) }
probe syscall.wait4.return { if (pid() == target()) println(status_str) }
""")
    ends = said["ends"]
    lines = [line for line in lines if line != "connect AF_UNIX"]  # the C library asks its name service
    assert lines[:3] == ["bind AF_INET 127.0.0.1 0", f"connect AF_INET 127.0.0.1 {said['port']}", "bind AF_UNIX"], lines
    assert f"1 {ends[0]} {ends[1]} 1" in lines, (said, lines)
    assert [line for line in lines if "=" in line] == ["WEXITSTATUS=7", "WTERMSIG=SIGKILL", "WSTOPSIG=SIGSTOP", "WTERMSIG=SIGKILL"]


def test_addresses_of_texts():
    """Where a text was read from has the text's name with _uaddr."""
    names = [("stat", "filename"), ("mkdir", "pathname"), ("unlink", "pathname"), ("truncate", "path"), ("swapon", "path"),
             ("setxattr", "name"), ("fremovexattr", "name"), ("request_key", "description"), ("utimensat", "filename")]
    script = " ".join(f"probe syscall.{call} {{ println({name}_uaddr) }}" for call, name in names)
    script += " probe syscall.dup2, syscall.dup3, syscall.accept, syscall.eventfd { println(flags, flags_str) }"
    script += " probe syscall.inotify_init, syscall.signalfd, syscall.epoll_create { println(flags) }"
    result = harness.stap("-W", "-p2", "-e", script)
    assert result.code == 0 and not result.err, result


def test_begins():
    result = stap("-e", 'probe oneshot { println("once") } probe init { println("first") } probe begin(-1) { println("then") }')
    assert result.out == "first\nthen\nonce\n", result
