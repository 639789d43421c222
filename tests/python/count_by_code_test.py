"""Counts whose keys follow from the process and from the code object: the agent remembers the element by the code object."""
import re

import pytest

import harness
from settled_test import E, PROGRAM, R

pytestmark = pytest.mark.needs_root

FORKING = """
import os
def leaf():
    pass
for _ in range(50):
    leaf()
pid = os.fork()
for _ in range(50 if pid else 30):
    leaf()
if pid:
    os.waitpid(pid, 0)
    print("pids", os.getpid(), pid)
"""

# Clauses, and the key that each has for a function.
SCRIPTS = {
    "name and file": (E + "{ @[copyinstr(arg1), copyinstr(arg0)] = count(); }", lambda name, file: (name, file)),
    "with what is constant": (E + '{ @[copyinstr(arg1), "x", 3, pid != 0] = count(); }', lambda name, file: (name, "x", 3, 1)),
    "made of them": (E + '{ @[strjoin(basename(copyinstr(arg0)), substr(copyinstr(arg1), 1)), strlen(copyinstr(arg1))] = count(); }',
                     lambda name, file: (file + name[1:], len(name))),
    "file alone": (E + '{ @[dirname(strjoin("/a/", copyinstr(arg0))), copyinstr(arg0)] = count(); }', lambda name, file: ("/a", file)),
    "both ends": (E + "{ @[copyinstr(arg1), copyinstr(arg0)] = count(); }" + R + "{ @b[copyinstr(arg0), copyinstr(arg1)] = count(); }",
                  lambda name, file: (name, file)),
    "always": (E + "/1/{ @[copyinstr(arg1), 0] = count(); }", lambda name, file: (name, 0)),
}


def counts(text, name=""):
    """{key: count} of the rows of an aggregation."""
    rows = re.findall(rf"^row{name} (.*) : (\d+)$", text, flags=re.M)
    return {tuple(int(k) if k.isdigit() else k for k in key.split(",")): int(n) for key, n in rows}


@pytest.mark.parametrize("script", SCRIPTS)
def test_against_the_program(dtrace, interp, script):
    text, key_of = SCRIPTS[script]
    form = ",".join({str: "%s", int: "%d"}[type(k)] for k in key_of("name", "file"))
    text += ' END { printa("row %s : %%@d\\n", @); %s }' % (form, 'printa("rowb %s : %@d\\n", @b);'.replace("%s", form) if "@b" in text else "")
    result = dtrace("-q", "-x", "place=target", "-n", text, "-c", interp.command(PROGRAM))
    ran = [(name, file, int(times)) for name, file, times in re.findall(r"^ran (\w+) (\w+) (\d+)$", result.out, flags=re.M)]
    assert result.code == 0 and not result.err and len(ran) == 6, result
    if script == "file alone":      # each function's definition, too
        ran += [("<module>", "here", 30 + 1500 + 1), ("<module>", "there", 30 + 1500)]
    want = {}
    for name, file, times in ran:
        key = key_of(name, file)
        want[key] = want.get(key, 0) + times
    found = counts(result.out)
    assert {key: found.get(key) for key in want} == want
    if "@b" in text:
        back = {(name, file): times for (file, name), times in counts(result.out, "b").items()}
        assert {key: back.get(key) for key in want} == want


@pytest.mark.alone
@pytest.mark.parametrize("beside", ["", "@n[copyinstr(arg1), pid] = count(); "])
def test_each_process_its_own(dtrace, interp, beside):
    """After a fork the child's elements are others; also where the clause counts twice, which a program does."""
    result = dtrace("-q", "-x", "place=target", "-n", "python*:::function-entry { @[pid, copyinstr(arg1)] = count(); %s} " % beside +
                    'END { printa("row %d,%s : %@d\\n", @); }', "-c", interp.command(FORKING))
    parent, child = map(int, re.search(r"^pids (\d+) (\d+)$", result.out, flags=re.M).groups())
    found = counts(result.out)
    assert result.code == 0 and (found[parent, "leaf"], found[child, "leaf"]) == (100, 30), result


def test_without_keys(dtrace, interp):
    """As many as with the name as the key."""
    program = "def leaf(): pass\nfor _ in range(1000): leaf()\n"
    result = dtrace("-q", "-x", "place=target", "-n", E + " { @ = count(); }", "-c", interp.command(program))
    named = dtrace("-q", "-x", "place=target", "-n", E + ' { @[copyinstr(arg1)] = count(); } END { printa("row %s : %@d\\n", @); }',
                   "-c", interp.command(program))
    assert result.code == named.code == 0
    assert int(result.out.split()[-1]) == sum(counts(named.out).values()) >= 1000


@pytest.mark.parametrize("key", ["n++ % 2", "(self->n++) % 2", "(timestamp / 1000) % 2", "rand() % 2", "tid % 2"])
def test_keys_that_change(dtrace, interp, key):
    """What does not follow from the code object is asked each time: no count goes to another key's element."""
    result = dtrace("-q", "-x", "place=target", "-n", "int n; self int n; " + E + "{ @[copyinstr(arg1), %s] = count(); }" % key +
                    ' END { printa("row %s,%d : %@d\\n", @); }', "-c", interp.command(PROGRAM))
    ran = [(name, int(times)) for name, times in re.findall(r"^ran (\w+) \w+ (\d+)$", result.out, flags=re.M)]
    assert result.code == 0 and not result.err and len(ran) == 6, result
    found = counts(result.out)
    for name in {name for name, _ in ran}:
        both = [found.get((name, 0), 0), found.get((name, 1), 0)]
        assert sum(both) == sum(times for one, times in ran if one == name), result
        if key != "tid % 2":
            assert min(both) > 100, result
