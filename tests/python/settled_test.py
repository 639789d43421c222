"""Predicates on the function's file and name, which the agent need not ask again for a code object that they refused."""
import re

import pytest

import harness

pytestmark = pytest.mark.needs_root

# Code objects come and go, so that one is where another was, also with another name or file; the program counts.
PROGRAM = """
import collections
ran = collections.Counter()
names, files = ("hit", "miss", "other"), ("here", "there")
def make(n):
    space = {}
    name = names[n % 3]
    exec(compile(f"def {name}(): pass", files[n % 2], "exec"), space)
    return name, files[n % 2], space[name]
def call(name, file, function, times):
    for _ in range(times):
        function()
    ran[name, file] += times
kept = [make(n) for n in range(60)]
for n in range(3000):
    call(*make(n), 1 + n % 4)
    call(*kept[n % 60], 2)
one = make(0)[2]
for n in range(300):                                    # one function gets other code
    one.__code__ = one.__code__.replace(co_name=names[n % 3], co_filename=files[n % 2])
    call(names[n % 3], files[n % 2], one, 2)
for (name, file), n in ran.items():
    print("ran", name, file, n)
"""

E, R = "python$target:::function-entry", "python$target:::function-return"
IS = {"hit": '(copyinstr(arg1) == "hit")', "there": '(copyinstr(arg0) == "there")', "miss": '(copyinstr(arg1) == "miss")'}

# Clauses, and what each counts: for which (name, file).
SCRIPTS = {
    "one": (E + "/{hit}/ {{ @[0] = count(); }}", [lambda name, file: name == "hit"]),
    "two": (E + "/{hit}/ {{ @[0] = count(); }}" + E + "/{there} && !{miss} && copyinstr(arg1) != \"<module>\"/ {{ @[1] = count(); }}",
            [lambda name, file: name == "hit", lambda name, file: file == "there" and name != "miss"]),
    "both ends": (E + "/{hit}/ {{ @[0] = count(); self->in = 1; }}" + R + "/self->in && {hit}/ {{ @[1] = count(); self->in = 0; }}" +
                  R + "/{miss}/ {{ @[2] = count(); }}",
                  [lambda name, file: name == "hit"] * 2 + [lambda name, file: name == "miss"]),
    "not by them alone": ("int n; " + E + "/(n = n + {hit} + {miss}) < 0/ {{ @[0] = count(); }} END {{ printf(\" 1 %d\\n\", n); }}",
                          [lambda name, file: False, lambda name, file: name in ("hit", "miss")]),
    "first these": ("int n; " + E + "/{hit} && (n = n + 1) > 0/ {{ @[0] = count(); }} END {{ printf(\" 1 %d\\n\", n); }}",
                    [lambda name, file: name == "hit"] * 2),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_against_the_program(dtrace, interp, script):
    text, selects = SCRIPTS[script]
    result = dtrace("-q", "-x", "place=target", "-n", text.format(**IS), "-c", interp.command(PROGRAM))
    ran = [(name, file, int(n)) for name, file, n in re.findall(r"^ran (\w+) (\w+) (\d+)$", result.out, flags=re.M)]
    assert result.code == 0 and not result.err and len(ran) == 6, result
    want = {k: sum(n for name, file, n in ran if select(name, file)) for k, select in enumerate(selects)}
    got = dict.fromkeys(want, 0) | {int(k): int(n) for k, n in re.findall(r"^ +(\d+) +(\d+)$", result.out, flags=re.M)}
    assert got == want, result


def test_other_sessions(dtrace, interp, start):
    """What one session's predicate refused, another's does not."""
    child = harness.running(start, interp)
    argv = ["-q", "-x", "place=target", "-p", child.pid, "-n"]
    first = harness.dtrace_start(*argv, f'BEGIN {{ printf("up\\n"); }} {E}/copyinstr(arg1) == "nope"/ {{ @ = count(); }}')
    try:
        assert first.stdout.readline()
        for _ in range(2):
            result = dtrace(*argv, f'int n; {E}/copyinstr(arg1) == "leaf" && n++ > 20/ {{ exit(0); }}')
            assert result.code == 0 and not result.err, result
        assert child.poll() is None and first.poll() is None
    finally:
        first.kill()
        first.communicate()
