"""Records of file, name, line, time, process and thread alone, which the agent outputs without the program: as the traced program tells."""
import re

import pytest

pytestmark = pytest.mark.needs_root

# Functions with names of all lengths and kinds, some of which come and go; each call is told before and after, with the time.
PROGRAM = """
import _thread, os, sys, time
now = time.monotonic_ns
names = ["fn_", "fn_7bytes", "fn_" + "x" * 5, "fn_" + "x" * 12, "fn_" + "y" * 300, "fn_\\u00e9t\\u00e9", "fn_\\u540d\\u524d", "fn_\\U00010400",
         "fn_" + "\\u00e9" * 130]
told = []
def make(n):
    space = {}
    name = names[n % len(names)]
    exec(compile("\\n" * (n % 300) + f"def {name}(): pass", "made%d" % (n % 2), "exec"), space)
    return name, "made%d" % (n % 2), n % 300 + 1, space[name]
def call(name, file, line, function):
    begun = now()
    function()
    told.append(f"told {name} {file} {line} {begun} {now()} {os.getpid()} {_thread.get_native_id()}")
kept = [make(n) for n in range(40)]
for n in range(2000):
    call(*kept[n % 40])
    call(*make(n))
def more(done):
    for n in range(200):
        call(*kept[n % 40])
    done.release()
done = _thread.allocate_lock()
done.acquire()
_thread.start_new_thread(more, (done,))
done.acquire()
sys.stdout.buffer.write("\\n".join(told).encode() + b"\\n")
"""
ALL, NAMED = "python$target:::function-entry", "py$target::fn_*:entry"
# Clauses, and what each prints of (name, file, line, pid, tid).
CLAUSES = {
    "name and line": ('printf("is %s:%d\\n", copyinstr(arg1), arg2)', "is {name}:{line}"),
    "name": ('printf("is %s\\n", copyinstr(arg1))', "is {name}"),
    "file, twice the name": ('printf("is %s %s %s\\n", copyinstr(arg0), copyinstr(arg1), copyinstr(arg1))', "is {file} {name} {name}"),
    "process and thread": ('printf("is %d %d %s\\n", pid, tid, copyinstr(arg1))', "is {pid} {tid} {name}"),
    "another argument": ('printf("is %d %s\\n", arg3, copyinstr(arg1))', "is 0 {name}"),
    "an address": ('printf("is %d %s\\n", arg0 != 0, copyinstr(arg1))', "is 1 {name}"),      # by the program
}


def told_and_found(dtrace, interp, probe, action, *options):
    result = dtrace("-q", "-x", "place=target", "-x", "bufsize=64k", *options, "-o", interp.dir / "out", "-n", probe + " { " + action + "; }",
                    "-c", interp.command(PROGRAM))
    assert result.code == 0 and not result.err, result
    told = [line.split()[1:] for line in result.out.splitlines() if line.startswith("told ")]
    assert len(told) == 4200
    return told, [line for line in (interp.dir / "out").read_bytes().split(b"\n") if line]


def cut(text, size):
    """As the first size bytes of it, the last of which is a NUL."""
    return text.encode()[:size - 1]


@pytest.mark.parametrize("probe", [ALL, NAMED], ids=["all", "named"])
@pytest.mark.parametrize("clause", CLAUSES)
def test_against_the_program(dtrace, interp, probe, clause):
    action, form = CLAUSES[clause]
    told, found = told_and_found(dtrace, interp, probe, action)
    found = [line for line in found if b"fn_" in line]
    want = [form.format(name="\0", file=file, line=line, pid=pid, tid=tid).encode().replace(b"\0", cut(name, 256))
            for name, file, line, begun, ended, pid, tid in told]
    assert [line for line in found if line not in want][:3] == [] and found == want


@pytest.mark.interps("3.9", "3.13")
def test_cut_strings(dtrace, interp):
    told, found = told_and_found(dtrace, interp, NAMED, 'printf("is %s\\n", copyinstr(arg1))', "-x", "strsize=12")
    assert found == [b"is " + cut(name, 12) for name, *_ in told]


@pytest.mark.interps("3.11", "3.14")
def test_time(dtrace, interp):
    """By the same clock, within each call.  Events read it some 50 ns off, and more where the tracer gets no CPU time to correct that."""
    apart_ns = 20000
    told, found = told_and_found(dtrace, interp, NAMED, 'printf("%d %s\\n", timestamp, copyinstr(arg1))')
    times = [int(re.match(rb"(\d+) ", line)[1]) for line in found]
    assert len(times) == len(told)
    assert [(at - int(begun), at - int(ended)) for at, (_, _, _, begun, ended, _, _) in zip(times, told)
            if not int(begun) - apart_ns <= at <= int(ended) + apart_ns] == []
