"""stap's options that change little, or nothing: each of the table, and what those do that do something."""
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

SAMPLES = {"WHEN": "never", "DIGITS": "11111", "NAME=VALUE": "A=1", "DIR": "/tmp", "MODULE": "/bin/true"}
ONE = "probe begin { println(1) exit() }"


def table(macro):
    """Rows of a kind: the option as it is given, and the text that says why."""
    text = (harness.TOP / "src/cmd/stap_opts.def").read_text()
    for letter, name, arg, why in re.findall(rf'^{macro}\(\w+,\s*(0|\'\w\'),\s*(?:NULL|"([\w-]+)"),\s*(?:NULL|"(.*?)"),\s*"(.*?)"', text, re.M):
        value = SAMPLES.get(arg.strip("[]"), "1") if arg else ""
        if name:
            yield f"--{name}" + (f"={value}" if arg else ""), why
        if letter != "0":
            yield f"-{letter[1]}{value}", why


def names():
    """What the two tests below give of the table."""
    return {re.match(r"--[\w-]+|-\w", option)[0] for macro in ("STAP_ACCEPT", "STAP_REFUSE") for option, _ in table(macro)}


def test_what_is_accepted_changes_nothing():
    options = [option for option, _ in table("STAP_ACCEPT")]
    assert len(options) > 20
    for option in options:
        result = harness.stap(option, "-e", ONE)
        assert result.code == 0 and result.out == "1\n" and not result.err, result


def test_what_is_refused_says_why():
    options = list(table("STAP_REFUSE"))
    assert len(options) > 10
    for option, why in options:
        result = harness.stap(option, "-e", ONE)
        assert result.code == 1 and not result.out and why in result.err, result


@pytest.mark.parametrize("option", ["--bpf", "--privilege=stapusr", "-DMAXSKIPPED=5", "-DTRYLOCKDELAY=3"])
def test_nothing_to_choose(option):
    result = harness.stap(option, "-e", ONE)
    assert result.code == 0 and result.out == "1\n" and not result.err, result


@pytest.mark.parametrize("option,line", [("--rlimit-cpu=7654", "Max cpu time +7654 "), ("--rlimit-nproc=76543", "Max processes +76543 "),
                                         ("--rlimit-fsize=87654321", "Max file size +87654321 "),
                                         ("--rlimit-stack=8000000", "Max stack size +8000000 "),
                                         # the sanitizers want 20 TiB for themselves
                                         ("--rlimit-as=76543210000000", "Max address space +76543210000000 ")])
def test_limits_of_the_process(option, line):
    """The kernel's account, of a command that stap starts."""
    result = harness.stap(option, "-e", 'probe begin { system("cat /proc/self/limits") exit() }')
    assert result.code == 0 and re.search(line, result.out), result


def test_limit_of_statements():
    script = 'probe begin { for (i = 0; i < 100; i++) n += i  println(n) exit() }'
    for limit, ends_well in ((50, False), (10000, True)):
        result = harness.stap(f"-DMAXACTION_INTERRUPTIBLE={limit}", "-e", script)
        assert ("4950" in result.out) == ends_well and ("MAXACTION exceeded" in result.err) != ends_well, result


def test_globals_at_the_end():
    script = "global a probe begin { a = 3 exit() }"
    assert harness.stap("-e", script).out == "a=3\n"
    assert harness.stap("--no-global-var-display", "-e", script).out == ""


def test_kinds_of_probe_points():
    """Each is one that a script may name, with something in the place of what is in parentheses."""
    result = harness.stap("--dump-probe-types")
    points = result.out.splitlines()
    assert points == sorted(points) and len(points) > 100 and 'process(string).mark(string)' in points and "timer.ms(number)" in points, result
    assert harness.stap("-p1", "-e", " ".join(f"probe {point.replace('(string)', '(%sx%s)' % (chr(34), chr(34))).replace('(number)', '(1)')} "
                                              "{ }" for point in points)).code == 0


PROGRAM = """
__attribute__((noinline)) int leaf(int n) { __asm__ volatile("" : "+r"(n)); return n; }
int main(void) { return leaf(7) - 7; }
"""


@pytest.fixture
def program(tmp_path):
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "bin").mkdir()
    subprocess.run(["gcc", "-g", "-O1", "-x", "c", "-", "-o", tmp_path / "bin/own"], input=PROGRAM, text=True, check=True)
    return tmp_path / "bin/own"


def test_variables_that_are_not_there(program):
    script = f'probe process("{program}").function("leaf") {{ println($n, " ", $nosuch) }}'
    assert harness.stap("-e", script, "-c", str(program)).code == 1
    result = harness.stap("--skip-badvars", "-e", script, "-c", str(program))
    assert result.code == 0 and result.out == "7 0\n", result


def test_root_of_programs(program):
    result = harness.stap(f"--sysroot={program.parent.parent}", "-e", 'probe process("/bin/own").function("leaf") { println("leaf") }',
                          "-c", str(program))
    assert result.code == 0 and result.out == "leaf\n", result


def test_example(tmp_path):
    (tmp_path / "one.stp").write_text(ONE)
    result = harness.stap("--example", tmp_path / "one.stp")
    assert result.code == 0 and result.out == "1\n", result


# --- the environment --------------------------------------------------------------------------------------------------

def test_folders_of_libraries(tmp_path):
    """A library is looked for where the dynamic loader would look."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (tmp_path / "here").mkdir()
    build = ["gcc", "-O1", "-x", "c", "-"]
    subprocess.run([*build, "-shared", "-fPIC", "-o", tmp_path / "here/libown.so"], input="int own(void) { return 3; }\n", text=True, check=True)
    subprocess.run([*build, "-o", tmp_path / "program", f"-L{tmp_path / 'here'}", "-lown"],
                   input="int own(void);\nint main(void) { return own() - 3; }\n", text=True, check=True)
    words = ("-e", f'probe process("{tmp_path / "program"}").library("libown.so").function("own") {{ println("own") }}',
             "-c", str(tmp_path / "program"))
    result = harness.stap(*words, env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(tmp_path / "here")})
    assert result.code == 0 and result.out == "own\n", result
    assert harness.stap(*words, env={"PATH": "/usr/bin:/bin"}).code == 1
