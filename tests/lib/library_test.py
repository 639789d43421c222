"""libdtap for others: its header, its shared object, and the example of its manual page."""
import errno
import re
import shutil
import subprocess

import pytest

from harness import BUILD, TOP, run, wait_until, waits

pytestmark = pytest.mark.needs_bpf

FLAGS = ["-Wall", "-Wextra", "-Werror", "-I", TOP / "include", "-L", BUILD / "src", "-Wl,-rpath," + str(BUILD / "src")]
CALLS = "def f(n):\n\treturn n\nfor i in range(3):\n\tf(i)\n"


def sanitizers():
    """What the library is built with, its callers are."""
    options = (BUILD / "meson-info/intro-buildoptions.json").read_text()
    found = re.search(r'"name": "b_sanitize", "value": "([\w,]+)"', options)
    return [f"-fsanitize={found[1]}"] if found and found[1] != "none" else []


def compiled(source, to, *more):
    more = (*more, *sanitizers())
    done = subprocess.run(["cc", *FLAGS, *more, "-o", to, source, "-ldtap"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return to


@pytest.fixture(scope="module")
def show(tmp_path_factory):
    program = compiled(TOP / "tests/lib/show.c", tmp_path_factory.mktemp("lib") / "show")

    def shown(language, script, command="", *options):
        done = run([program, language, script, command, *options])
        assert done.code == 0, done
        return done.out.splitlines()

    return shown


def manual_example():
    """The program in dtap(3), as a reader would copy it."""
    text = (TOP / "doc/man/dtap.3").read_text()
    return re.search(r"^\.Bd -literal\n(.*?)^\.Ed", text, re.M | re.S)[1].replace(r"\e", "\\")


@pytest.mark.interps("3.11")
def test_manual_example(interp, tmp_path):
    (tmp_path / "example.c").write_text(manual_example())
    program = compiled(tmp_path / "example.c", tmp_path / "example")
    done = run([program, interp.command(CALLS)])
    assert done.code == 0 and "f 3\n" in done.out, done


@pytest.mark.interps("3.13")
def test_threads(interp, tmp_path):
    """What a process does now needs no run; the callback ends it, and what is no Python is refused with a reason."""
    threads = compiled(TOP / "tests/lib/threads.c", tmp_path / "threads")
    code = "import sys\ndef waits():\n\tprint('here', flush=True)\n\tsys.stdin.read()\nwaits()\n"
    with subprocess.Popen([*interp.argv, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "here\n"
        wait_until(lambda: waits(child.pid))
        done = run([threads, child.pid])
        child.stdin.close()
    assert done.out == f"{child.pid} waits:4 1\n{child.pid} <module>:5 1\n7 \n", done
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        done = run([threads, child.pid])
        child.stdin.close()
    assert done.out.startswith(f"{-errno.ENOENT} ") and str(child.pid) in done.out, done


def test_header_is_cxx(tmp_path):
    if not shutil.which("g++"):
        pytest.skip("there is no g++")
    (tmp_path / "x.cc").write_text("#include <dtap.h>\nint main() { return dtap_version() == nullptr; }\n")
    done = subprocess.run(["g++", *FLAGS, *sanitizers(), "-o", tmp_path / "x", tmp_path / "x.cc", "-ldtap"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "x"]).returncode == 0


@pytest.mark.interps("3.9", "3.13")
def test_records(show, interp):
    lines = show("d", """python$target:::function-entry /copyinstr(arg1) == "f"/
        { printf("%s %d", copyinstr(arg1), arg2); trace(arg2); @n[copyinstr(arg1), arg2] = count(); @s = sum(-2); }""",
                 interp.command(CALLS))
    records = [re.sub(r"^record python\d+:|u?int=", "", line) for line in lines if line.startswith("record")]
    assert records == ["function-entry printf text=f 1 string=f 1", "function-entry trace 1"] * 3, lines
    rows = [re.sub(r"u?int=", "", line) for line in lines if line.startswith("row")]
    assert sorted(rows) == ["row n count string=f 1 = 3", "row s sum = -6"], lines
    assert lines[-1] == "end 0 status 0"


def test_buckets(show):
    """Each with its smallest value, the first one's of all if it is open."""
    lines = show("d", "BEGIN { @q = quantize(5); @q = quantize(6); @q = quantize(-3); @l = lquantize(3, 0, 10, 2); "
                 "@l = lquantize(-1, 0, 10, 2); exit(3); }")
    rows = {line.split()[1]: line.split() for line in lines if line.startswith("row")}
    assert {"4:2", "-3:1"} <= set(rows["q"]) and {"2:1", f"{-1 << 63}:1"} <= set(rows["l"]), lines
    assert lines[-1] == "end 0 status 3"


@pytest.mark.interps("3.11")
def test_stack(show, interp):
    lines = show("d", 'python$target:::function-entry /copyinstr(arg1) == "f"/ { pystack(); }', interp.command(CALLS))
    stacks = [line for line in lines if " stack=" in line]
    assert len(stacks) == 3 and all("(f)" in line and "(<module>)" in line and "|" in line for line in stacks), lines


def test_own_loop_and_stop(show):
    lines = show("d", "tick-10ms { trace(1); }", "", "turn", "stop=3")
    assert sum(line.startswith("record") for line in lines) >= 3 and lines[-1] == "end 0 status 0", lines


def test_systemtap(show):
    lines = show("stap", 'probe begin { printf("%d %s", 4, "x"); exit() }')
    assert "record" in lines[0] and 'text=4 x int=4 string=x' in lines[0], lines


def test_printing(show):
    lines = show("d", "BEGIN { printf(\"a\\n\"); @ = count(); exit(0); }", "", "print", "quiet")
    assert "a" in lines and any(line.split() == ["1"] for line in lines), lines


@pytest.mark.parametrize("language, script, options, words", [
    ("d", "BEGIN { nosuch", (), "failed to compile script"),
    ("d", "BEGIN { trace(nosuch); }", (), "nosuch"),
    ("stap", "probe begin { print(nosuch) }", (), "unresolved"),
    ("d", "BEGIN { exit(0); }", ("nosuch=1",), "failed to set -x nosuch=1"),
    ("d", "nosuch:::x { }", (), "nosuch"),
])
def test_refusals(show, language, script, options, words):
    lines = show(language, script, "", *options)
    assert any(line.startswith("message error") and words in line for line in lines), lines
    assert options or lines[-1].startswith("end -"), lines
