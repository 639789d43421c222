"""What a SystemTap script can know of the process: the traced program itself and /proc are the witnesses."""
import json
import os

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PYTHON = "/usr/bin/python3"

# Says of itself, as the first line, what the scripts say; then calls what they wait for.
PROGRAM = """
import json, os, sys, threading
def stat(n): return int(open("/proc/self/stat").read().rpartition(")")[2].split()[n - 3])
def comm(pid): return open(f"/proc/{pid}/comm").read().strip()
def told():
    os.getsid(0)
os.setpgid(0, 0)
os.nice(3)
os.setegid(7)
os.seteuid(12)
words = open("/proc/self/cmdline").read().split("\\0")[:-1]
print(json.dumps({
    "ids": [os.geteuid(), os.getegid(), os.getpgrp(), os.getsid(0)],
    "parent": [comm(os.getppid()), os.getppid()],
    "task": [os.getpid(), threading.get_native_id(), os.getuid(), os.geteuid(), os.getgid(), os.getegid(), stat(18), stat(19)],
    "comm": comm("self"), "words": words, "home": os.environ["HOME"], "last": os.environ["ZZ_LAST"]}), flush=True)
thread = threading.Thread(target=told)
"""

IDS = 'printf("%d %d %d %d\\n", euid(), egid(), pgrp(), sid())'
COMMAND_LINE = """
    println(cmdline_str())
    for (i = -1; i < 7; i++) printf("<%s>", cmdline_arg(i))
    printf("\\n%s|%s|%s\\n", cmdline_args(0, -1, ","), cmdline_args(1, 2, "; "), cmdline_args(19, -1, ","))
    printf("%s|%s|%s|%d\\n", env_var("HOME"), env_var("ZZ_LAST"), env_var("HO"), strlen(env_var("LONG")))
"""


def run(program, script, argv, *options, tail="", **env):
    """What the program says of itself, and the lines of the script."""
    program.write_text(PROGRAM + tail)
    result = harness.stap(*options, "-w", "-e", script, "-c", " ".join(argv),
                          env={"PATH": "/usr/bin:/usr/sbin:/bin", "SYSTEMTAP_TAPSET": str(harness.TOP / "share" / "tapset"), **env})
    # Two programs write: the traced one, whose line is JSON, and stap, when it gets to it.
    lines = result.out.splitlines()
    said = [line for line in lines if line.startswith("{")]
    assert result.code == 0 and len(said) == 1 and len(lines) > 1, result
    return json.loads(said[0]), [line for line in lines if line not in said]


def check_command_line(said, lines):
    words = said["words"]
    arg = lambda n: words[n] if 0 <= n < len(words) else ""
    assert lines == [" ".join(words), "".join(f"<{arg(n)}>" for n in range(-1, 7)),
                     f"{','.join(words)}|{'; '.join(words[1:3])}|", f"{said['home']}|{said['last']}||511"]


ENVIRONMENT = {"HOME": "/here and there", "LONG": "x" * 1500, "ZZ_LAST": "the=end"}


def test_in_the_kernel(tmp_path):
    """In another thread than the first."""
    program = tmp_path / "program.py"
    script = """
        probe kernel.syscall("getsid") { if (pid() == target() && tid() != pid()) {
            %s %s
            printf("%%s %%d\\n", pexecname(), task_pid(task_parent(task_current())))
            t = task_current()
            printd(" ", task_pid(t), task_tid(t) == tid(), task_uid(t), task_euid(t), task_gid(t), task_egid(t), task_prio(t), task_nice(t))
            println("\\n", task_execname(t), " ", task_execname(task_parent(t)))
            try { println(task_pid(8)) } catch { println("caught") }
            try { println(task_execname(0)) } catch { println("caught") }
        } }""" % (IDS, COMMAND_LINE)
    said, lines = run(program, script, [PYTHON, str(program), "one", "'two three'", "''"],
                      tail="thread.start()\nthread.join()\n", **ENVIRONMENT)
    assert lines[0] == " ".join(map(str, said["ids"]))
    check_command_line(said, lines[1:5])
    assert lines[5] == "%s %d" % tuple(said["parent"])
    said["task"][1] = 1
    assert lines[6] == " ".join(map(str, said["task"]))
    assert lines[7] == f"{said['comm']} {said['parent'][0]}"
    assert lines[8:] == ["caught", "caught"]


def check_python_probe(interp, tmp_path, *options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "told()\n")
    script = 'probe python.function.entry { if (funcname == "told") { %s %s } }' % (IDS, COMMAND_LINE)
    argv = [*interp.argv, interp.add(program), "one", "two"]
    said, lines = run(program, script, argv, *options, tail="told()\n", **ENVIRONMENT)
    assert lines[0] == " ".join(map(str, said["ids"]))
    check_command_line(said, lines[1:])


@pytest.mark.interps("3.9", "3.13", "3.15")
def test_in_a_python_probe(interp, tmp_path):
    check_python_probe(interp, tmp_path)


@pytest.mark.interps("3.13", "3.15")
def test_in_the_target(interp, tmp_path):
    """There it is the process itself that says it."""
    check_python_probe(interp, tmp_path, "--place=target")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names of registers")
def test_registers(tmp_path):
    """Arguments of a call of the C library, where the System V ABI puts them."""
    program = tmp_path / "program.py"
    libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    script = """
        probe process("%s").function("setpriority") { if (pid() == target()) {
            printdln(" ", register("rdi"), u_register("esi") == pid(), register("edx"), u_register("edx"), register("dl"), u_register("dx"))
            println(usymname(u_register("rip")))
        } }""" % libc
    said, lines = run(program, script, [PYTHON, str(program)], tail="os.setpriority(os.PRIO_PROCESS, os.getpid(), 5 - 12 + 1)",
                      **ENVIRONMENT)
    nice = min(os.nice(0) + 3, 19)      # os.nice(3) above
    assert said and lines == [f"0 0 {nice} {nice} {nice} {nice}", "setpriority",
                              "0 1 -6 4294967290 -6 65530", "setpriority"]


@pytest.mark.parametrize("call, text", [
    ('register("rdj")', "unknown register"), ('register("xmm0")', "unknown register"), ('register(execname())', "unknown register"),
    ('register("rax")', "cannot access CPU registers in this context"), ("sprint_loadavg()", "read /proc/loadavg"),
    ("module_size()", "no kernel module is made")])
def test_what_cannot_be_had(call, text):
    result = harness.stap("-e", "probe begin { println(%s) }" % call)
    assert result.code == 1 and text in result.err, result
