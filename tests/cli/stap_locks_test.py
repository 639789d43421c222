"""stap -p3 -vvv: which globals each probe reads and writes, and whose condition that changes."""
import re

import pytest

import harness


@pytest.mark.parametrize("script, locks, changes", [
    # a condition is read by its own probe, and by whoever can change it
    ("global a = 1 probe timer.s(1) if (a > 3) { next } probe timer.s(2) { a = 5 }", ["a[r]", "a[rw]"], ["1 0"]),
    ("global a, b probe timer.s(1) if (a) { b++ } probe timer.s(2) { print(b) }", ["a[r] b[rw]", "b[r]"], []),
    # through functions, also those that call themselves
    ("""global a, n function f(x) { if (x > 0) f(x - 1); a[x] = 1 } probe timer.s(1) if (n == 2) { f(3) }
     probe timer.s(2) { n = a[1] }""", ["a[w] n[r]", "a[r] n[rw]"], ["1 0"]),
    # keys of an assignment are read; <<< and delete write; foreach and sorting
    ("global k, s probe timer.s(1) { s[k] <<< 1 } probe timer.s(2) { k = @count(s[1]); delete s }", ["k[r] s[w]", "k[w] s[rw]"], []),
    ("global h probe timer.s(1) { foreach (k in h-) h1 = k; println(h1) } probe timer.s(2) { h[1] = 2 }", ["h[rw]", "h[w]"], []),
    ("probe timer.s(1) { print(1) }", ["nothing"], []),
    # a probe may change its own condition
    ("global a = 1 probe timer.s(1) if (a) { a = 0 }", ["a[rw]"], ["0 0"]),
])
def test_locks(script, locks, changes):
    result = harness.stap("-p3", "-vvv", "-e", script)
    found = re.findall(r"^probe (\d+) \('timer\.s\(\d\)'\) locks (.*)$", result.err, re.M)
    assert result.code == 0, result
    assert [text.replace("__global_", "") for _, text in found] == locks and [n for n, _ in found] == [str(i) for i in range(len(locks))]
    assert re.findall(r"^probe (\d+) can affect condition of probe (\d+)$", result.err, re.M) == [tuple(c.split()) for c in changes]
