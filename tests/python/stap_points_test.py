"""SystemTap's probe points on real programs: libraries, functions, processes, threads, system calls, tracepoints."""
import os
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

LIBRARY = "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"
CALLS = "def f(): return g()\ndef g(): return 1\nf()\nf()\n"


def said(result):
    return [line for line in result.err.splitlines() if not line.startswith("# ")]


def run(script, *args, **kwargs):
    result = harness.stap("-e", script, *args, **kwargs)
    assert (result.code, said(result)) == (0, []), result
    return result.out.splitlines()


@pytest.fixture
def embedding(tmp_path):
    """A small program that is linked to a shared CPython."""
    if not os.path.exists(LIBRARY):
        pytest.skip(f"{LIBRARY} is not installed")
    source = tmp_path / "embed.c"
    source.write_text("int Py_BytesMain(int argc, char **argv);\n"
                      "int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }\n")
    subprocess.run(["gcc", source, "-o", tmp_path / "embed", LIBRARY], check=True)
    return tmp_path / "embed"


@pytest.mark.parametrize("library", ["libpython3.11.so.1.0", "libpython3*", LIBRARY])
def test_library(embedding, tmp_path, library):
    """The HOWTO's form for shared builds."""
    program = tmp_path / "calls.py"
    program.write_text(CALLS)
    probe = 'probe process("%s").library("%s").mark("function__%s") ' \
            '{ if (user_string($arg1) == "%s") println(thread_indent(%d), " %s ", user_string($arg2), " ", $arg3) }'
    script = "".join(probe % (embedding, library, way, program, delta, arrow)
                     for way, delta, arrow in (("entry", 1, "=>"), ("return", -1, "<=")))
    lines = run(script, "-c", f"{embedding} {program}")
    rows = [re.match(r" *\d+ embed\(\d+\):( *) (=>|<=) (\S+) (\d+)$", line).groups() for line in lines]
    assert [(len(depth), *rest) for depth, *rest in rows] == [
        (0, "=>", "<module>", "0"),
        (1, "=>", "f", "1"), (2, "=>", "g", "2"), (2, "<=", "g", "2"), (1, "<=", "f", "1"),
        (1, "=>", "f", "1"), (2, "=>", "g", "2"), (2, "<=", "g", "2"), (1, "<=", "f", "1"),
        (0, "<=", "<module>", "4")]


@pytest.mark.parametrize("folder, flags", [("{0}/lib", ""), ("$ORIGIN/lib", ""), ("${{ORIGIN}}/lib", ",--disable-new-dtags")])
def test_library_where_the_program_says(embedding, tmp_path, folder, flags):
    """DT_RUNPATH and DT_RPATH lead to another file than the usual folders (pyenv's, conda's, a venv of uv's)."""
    (tmp_path / "lib").mkdir()
    shutil.copy(LIBRARY, tmp_path / "lib")
    subprocess.run(["gcc", tmp_path / "embed.c", "-o", tmp_path / "own", "-Wl,-rpath," + folder.format(tmp_path) + flags,
                    LIBRARY], check=True)
    loaded = subprocess.run(["ldd", tmp_path / "own"], capture_output=True, text=True).stdout    # the witness
    assert f"=> {tmp_path}/lib/libpython3.11.so.1.0" in loaded
    result = harness.stap("-l", f'process("{tmp_path}/own").library("libpython3.11.so*").mark("line")')
    assert result.out == f'process("{tmp_path}/own").library("{tmp_path}/lib/libpython3.11.so.1.0").mark("line")\n', result


def test_program_without_python(embedding):
    """The HOWTO: the markers of a shared build are in its library."""
    result = harness.stap("-e", f'probe process("{embedding}").mark("line") {{}}')
    assert result.code == 1 and 'no match' in result.err and '.library("libpython3.11.so.1.0")' in result.err, result


@pytest.fixture
def shim(embedding, tmp_path):
    """As pyenv's: a script in front of the program."""
    shim = tmp_path / "shim"
    shim.write_text(f'#!/usr/bin/env bash\nexec "{embedding}" "$@"\n')
    shim.chmod(0o755)
    return shim


def test_tapset_behind_a_shim(shim, tmp_path):
    """Each alternative of the tapset's points is tried on the program that the command becomes."""
    program = tmp_path / "calls.py"
    program.write_text(CALLS)
    script = 'probe python.function.entry { if (filename == "%s") println(funcname) }' % program
    assert run(script, "-c", f"{shim} {program}") == ["<module>", "f", "g", "f", "g"]


def test_process_of_a_shim(shim):
    result = harness.stap("-e", f'probe process("{shim}").mark("line") {{}}')
    assert result.code == 1 and f"{shim} is a script, run by /usr/bin/bash" in result.err, result


@pytest.mark.parametrize("line", ["#!/usr/bin/python3 -u", "#! /usr/bin/env python3", "#!/usr/bin/env -S A=1 python3 -u"])
def test_script_means_its_interpreter(tmp_path, line):
    """stapprobes(3stap), PROCESS: "If PATH names refer to scripts, the actual interpreters ... are probed"."""
    program = tmp_path / "calls.py"
    program.write_text(f"{line}\n{CALLS}")
    program.chmod(0o755)
    env = {"PATH": "/usr/bin:/bin"}
    shown = f'process("{os.path.realpath("/usr/bin/python3")}").mark("function__entry")\n'
    for point in f'process("{program}")', f'process("{tmp_path}/call*.py")':
        result = harness.stap("-l", point + '.mark("function__entry")', env=env)
        assert result.out == shown, result
    script = 'probe process("%s").mark("function__entry") { if (user_string($arg1) == "%s") println(user_string($arg2)) }'
    assert run(script % (program, program), "-c", str(program), env=env) == ["<module>", "f", "g", "f", "g"]


def test_python_of_another_name(tmp_path):
    """The HOWTO's process("python") where, as on Debian, there is only python3."""
    (tmp_path / "python3").symlink_to("/usr/bin/python3")
    result = harness.stap("-e", 'probe process("python").mark("line") {}', env={"PATH": str(tmp_path)})
    assert result.code == 1 and "cannot find executable 'python'; there is a python3" in result.err, result


def test_wrong_mark_does_not_run_the_command():
    result = harness.stap("-e", 'probe process.mark("function_entry") {}', "-c", "/usr/bin/python3 -c 'print(1)'")
    assert result.code == 1 and result.out == "" and "similar marks: function__entry" in result.err, result


def test_listing(embedding):
    point = f'process("{embedding}").library("libpython3.11*")'
    result = harness.stap("-L", point + '.mark("gc__*")')
    shown = f'process("{embedding}").library("{LIBRARY}")'
    assert result.code == 0 and result.out == f'{shown}.mark("gc__done") $arg1:long\n{shown}.mark("gc__start") $arg1:long\n'


ALIASES = """
probe t.start = timer.s(1) { number = 1; name = sprint(number); later = number > 6; if (later) number = 7 }
probe t.both = t.start { extra = number + 1 }
probe t.deep.er += t.both { after = 2 }
probe t.deep.two = timer.s(1), t.start { text = "a" . "b" }
probe t.mark = process("%s").mark("gc__start"), process("%s").mark("function__*") { first = $arg1 }
"""

# What SystemTap 4.8 lists.  Of several points what all of them have.
START = "number:long name:string later:long"
LISTED = {
    "t.*": [f"t.both {START} extra:long", "t.mark first:long $arg1:long", f"t.start {START}"],
    "t.deep.*": [f"t.deep.er {START} extra:long after:long", "t.deep.two text:string"],
    "t.**": [f"t.both {START} extra:long", f"t.deep.er {START} extra:long after:long", "t.deep.two text:string",
            "t.mark first:long $arg1:long", f"t.start {START}"],
    "**.two": ["t.deep.two text:string"],
}


@pytest.mark.interps("3.9")
@pytest.mark.parametrize("pattern", LISTED)
def test_listing_aliases(interp, tmp_path, pattern):
    (tmp_path / "t.stp").write_text(ALIASES % (interp.executable, interp.executable))
    for option, wanted in ("-L", LISTED[pattern]), ("-l", [line.split()[0] for line in LISTED[pattern]]):
        result = harness.stap("-I", tmp_path, option, pattern)
        assert (result.code, said(result), result.out.splitlines()) == (0, [], wanted)


LOOP = "import time\ndef f(): pass\nprint('up', flush=True)\nwhile 1:\n    f(); time.sleep(0.01)\n"


@pytest.mark.interps("3.9", "3.11", "3.14")
@pytest.mark.parametrize("bare", [True, False], ids=["process", "pid"])
def test_running_process(interp, start, bare):
    child = start(interp.argv_of(LOOP), stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"up\n"
    point = "process" if bare else f"process({child.pid})"
    script = f'global n probe {point}.mark("function__entry") {{ n[user_string($arg2)]++ }} ' \
             'probe timer.ms(20) { if (n["f"] > 10) exit() } ' \
             'probe end { foreach (name in n) println(name, n[name] > 10, pid() != target(), target()) }'
    lines = run(script, "-x", str(child.pid))
    assert lines == [f"f11{child.pid}"]
    assert child.poll() is None


PYTHON = os.path.realpath("/usr/bin/python3")


def test_functions():
    script = f'''probe process("{PYTHON}").function("PyList_Append").call {{ if (pid() == target() && !i++) println(probefunc(), pointer_arg(1) != 0, is_return()) }}
                 probe process("{PYTHON}").function("PyList_Append").return {{ if (pid() == target() && !r++) println($return, is_return()) }}
                 global i, r probe end {{ println(i > 0, i == r) }}'''
    lines = run(script, "-c", f"{PYTHON} -S -c 'x = []; [x.append(i) for i in range(5)]'")
    assert lines == ["PyList_Append10", "01", "11"]


def test_function_pattern():
    result = harness.stap("-l", f'process("{PYTHON}").function("PyObject_CallMethod*").exported')
    nm = subprocess.run(["nm", "-D", "--defined-only", PYTHON], stdout=subprocess.PIPE, text=True, check=True).stdout
    wanted = sorted(set(re.findall(r" T (PyObject_CallMethod\w*)", nm)))
    # With its file, if there is debug information.
    assert re.findall(r'function\("(\w+)["@]', result.out) == wanted


def test_process_and_threads():
    script = 'probe process.begin { println("begin", pid() == target(), pid() == tid()) } ' \
             'probe process.thread.begin { println("thread", pid() == target(), pid() == tid()) } ' \
             'probe process.thread.end { println("over", pid() == tid()) } ' \
             'probe process.end { println("end", pid() == target()) }'
    program = "import threading, time; t = threading.Thread(target=int); t.start(); t.join(); time.sleep(0.3)"
    assert run(script, "-c", f"{PYTHON} -S -c '{program}'") == ["begin11", "thread10", "over0", "end1"]


def test_begin_by_path(tmp_path):
    program = tmp_path / "program"
    program.write_bytes(open("/bin/true", "rb").read())
    program.chmod(0o755)
    assert run(f'probe process("{program}").begin {{ println(execname(), pp()) }}',
               "-c", f"sh -c '{program}; {program}'") == [f'programprocess("{program}").begin'] * 2


def test_system_calls():
    """write(2) is number 1 on x86-64."""
    script = 'probe process.syscall { if ($syscall == 1 && $arg1 == 1) println("write ", $arg3) } ' \
             'probe process.syscall.return { if ($syscall == 1 && $return == 7) println("returns ", $return) }'
    lines = run(script, "-c", f"{PYTHON} -S -c 'import os; os.write(1, b\"1234567\")'")
    assert [line.replace("1234567", "") for line in lines] == ["write 7", "returns 7"]


def test_tracepoint():
    script = 'probe kernel.trace("sched_process_exit") { if (pid() == target()) println($p->comm$, $p->pid == target(), $$name) }'
    # The kernel's own number of the task is that of the machine's first namespace of pids, which always has this inode.
    same = int(os.readlink("/proc/self/ns/pid") == "pid:[4026531836]")
    assert run(script, "-c", "sleep 0.1") == [f'"sleep"{same}sched_process_exit']


def test_no_such_tracepoint():
    result = harness.stap("-p2", "-e", 'probe kernel.trace("no_such") { println(1) }')
    assert result.code == 1 and "semantic error: no match" in result.err


def test_limits_and_values():
    assert run("global g = 1, s = \"x\" probe begin { println(g, s) exit() }", "-G", "g=42", "-G", "s=abc") == ["42abc"]
    assert run('probe begin { println(strlen("12345678901234567890")) exit() }', "-DMAXSTRINGLEN=16") == ["15"]
    result = harness.stap("-e", "probe begin { exit() }", "-DMAXSTRINGLEN=1")
    assert result.code == 1 and "MAXSTRINGLEN from 2 to 65536" in result.err, result
    for bad in ("x", "1x", "99999999999999999999"):
        result = harness.stap("-G", f"g={bad}", "-e", "global g = 1 probe begin { println(g) exit() }")
        assert result.code == 1 and "is none" in result.err and not result.out, result
    result = harness.stap("-G", "nosuch=1", "-e", "probe begin { println(1) exit() }")
    assert result.code == 1 and "-G nosuch=1" in result.err


def test_output_files(tmp_path):
    assert run('probe begin { println("here") exit() }', "-o", tmp_path / "out%%") == []
    assert (tmp_path / "out%").read_text() == "here\n"
    text = "x" * 99
    run(f'probe timer.ms(5) {{ for (i = 0; i < 300; i++) println("{text}") }}', "-T", "2", "-S", "1,2", "-o",
        tmp_path / "log")
    files = sorted(tmp_path.glob("log.*"))
    assert 1 <= len(files) <= 2 and set("".join(path.read_text() for path in files)) == {"x", "\n"}


def test_background(tmp_path):
    out = tmp_path / "out"
    begun = harness.stap("-F", "-o", out, "-T", "1", "-e", 'probe timer.ms(200) { println("tick") }')
    assert begun.code == 0 and begun.out.strip().isdigit()
    harness.wait_until(lambda: not os.path.exists(f"/proc/{begun.out.strip()}"))
    assert set(out.read_text().split()) == {"tick"}


def test_verbose_ends_as_drivers_look_for_it():
    result = harness.stap("--runtime=kernel", "-v", "-e", "probe begin { exit() }")
    assert result.code == 0
    assert re.fullmatch(r"Pass 5: run completed in \d+usr/\d+sys/\d+real ms\.", result.err.splitlines()[-1])


def test_interrupt(start):
    tracer = start([harness.STAP, "-e", 'probe begin { println("on") } probe end { println("off") }'],
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert tracer.stdout.readline() == b"on\n"
    tracer.send_signal(2)
    result = harness.finish(tracer, ["stap"])
    assert (result.code, result.out, result.err) == (0, "off\n", "")


def test_command_does_not_decide_the_status():
    assert run("probe end { println(1) }", "-c", "sh -c 'exit 3'") == ["1"]


def test_command_of_the_shell(tmp_path):
    """As staprun(8), which gives what wordexp(3) refuses to sh -c; target() is the program that sh becomes."""
    program = tmp_path / "it's.py"
    program.write_text(CALLS + "print('said')\n")
    script = 'probe process("/usr/bin/python3").mark("function__entry") { if (pid() == target() && user_string($arg2) == "f") println("1") }'
    lines = run(script, "-c", f"""cd {tmp_path}; exec $PY "it's.py" > out""", env={"PY": "/usr/bin/python3"})
    assert lines == ["1", "1"] and (tmp_path / "out").read_text() == "said\n"


def test_no_command():
    result = harness.stap("-c", "/no/such/program", "-e", "probe begin { println(1) }")
    assert result.code == 1 and "ERROR: " in result.err and result.out == ""


def test_tapset_of_the_script_hides_ours(tmp_path):
    (tmp_path / "mine.stp").write_text('function errno_str:string(n:long) { return "mine" }\n')
    assert run("probe begin { println(errno_str(2)) exit() }", "-I", tmp_path) == ["mine"]
    assert run("probe begin { println(errno_str(2)) exit() }") == ["ENOENT"]


def test_bad_tapset_is_left_out(tmp_path):
    (tmp_path / "bad.stp").write_text("function helper( {\n")
    result = harness.stap("-I", tmp_path, "-e", "function helper() { return 5 } probe begin { println(helper()) exit() }")
    assert (result.code, result.out) == (0, "5\n"), result
    result = harness.stap("-I", tmp_path, "-p2", "-e", "probe begin { println(helper()) }")
    assert result.code == 1 and "has errors, and will be skipped" in result.err




def test_system_calls_by_name():
    """The tapset's syscall aliases; AT_FDCWD is -100."""
    script = 'probe syscall.openat { if (pid() == target() && filename_unquoted == "/etc/hostname") printf("%s %d %d\\n", name, dfd, flags & 3) } ' \
             'probe syscall.close.return { if (pid() == target()) closed[retstr]++ } global closed ' \
             'probe end { println(closed["0"] > 0, closed["-9 (EBADF)"]) }'
    lines = run(script, "-c", f"{PYTHON} -S -c 'import os; open(\"/etc/hostname\").close(); [os.closerange(900, 901)]'")
    assert lines[0] == "openat -100 0" and lines[1][0] == "1", lines


@pytest.mark.parametrize("place", ["kernel", "target"])
@pytest.mark.interps("3.9", "3.13")
def test_timing(interp, place):
    """-t: each handler's hits, also of those that it left by next or an error, and its times, as SystemTap prints them."""
    script = '''global n, left, failed
    probe foo = process.mark("function__entry") { n++ }
    probe foo { if (user_string($arg2) == "f") { left++ next } if (user_string($arg2) == "g") { failed++ error("no") } }
    probe end, never { println(n, " ", left, " ", failed) }'''
    result = harness.stap("-t", "-w", "--suppress-handler-errors", f"--place={place}", "-e", script, "-c",
                          interp.command("def f(): pass\ndef g(): pass\nfor i in range(40): f(), g(), g()\n"))
    assert result.code == 0, result
    lines = result.out.splitlines()
    calls, left, failed = map(int, lines[0].split())
    assert (left, failed) == (40, 80) and calls >= 120
    assert lines[1] == "----- probe hit report: " and lines[-1] == "----- refresh report:"
    form = r"(.*), \(<input>:(\d+):(\d+)\), hits: (\d+), cycles: (\d+)min/(\d+)avg/(\d+)max, variance: (\d+), from: (.*), index: (\d)"
    (pp, line, column, hits, low, mean, high, _, source, index), end = [re.fullmatch(form, text).groups() for text in lines[2:-1]]
    assert (line, column, source, index) == ("3", "11", "foo", "0") and pp.endswith('.mark("function__entry")')
    assert int(hits) == calls and 0 <= int(low) <= int(mean) <= int(high)
    assert (end[0], end[3], end[8], end[9]) == ("end", "1", "end", "1")


def test_syscall_parms():
    """All six registers of exit_group(0), which are named as a marker's arguments are."""
    script = 'probe process("/bin/true").syscall { if (pid() == target() && $syscall == 231) println($$parms == sprintf(' \
             '"$arg1=%#x $arg2=%#x $arg3=%#x $arg4=%#x $arg5=%#x $arg6=%#x", $arg1, $arg2, $arg3, $arg4, $arg5, $arg6), $arg1) }'
    assert run(script, "-c", "/bin/true") == ["10"]


@pytest.mark.parametrize("what, why", [
    ("$arg1->x", "utrace variable '$arg1' may not be used as a structure"),
    ("$syscall$", "utrace variable '$syscall' may not be pretty-printed"),
    ("$arg7", "the point has $syscall and $arg1 to $arg6"), ("$return", "the point has $syscall and $arg1 to $arg6"),
])
def test_syscall_parts(what, why):
    result = harness.stap("-p2", "-e", 'probe process("/bin/true").syscall { println(%s) }' % what)
    assert result.code == 1 and why in result.err, result
