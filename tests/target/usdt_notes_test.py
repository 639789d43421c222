"""Programs built with "dtrace -G" of DTrace for Linux: their notes' types and order of arguments; semaphores in .bss."""
import re

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

PROGRAM = harness.BUILD / "tests" / "unit" / "elf" / "marked_usdt"


def test_arguments(dtrace):
    result = dtrace("-qn", 'turned$target:::place { printf("%s %s %d %d %s\\n", probefunc, copyinstr(arg0), arg1, args[2], '
                    'stringof(args[0])); }', "-c", PROGRAM)
    assert sorted(filter(None, result.out.split("\n"))) == ["0", "work odd 1 1 odd", "work odd 3 3 odd", "work two 2 2 two"], result


def test_listing(dtrace):
    result = dtrace("-lvP", "turned$target", "-c", PROGRAM)
    assert re.findall(r"args\[\d\]: .*|work \w+", result.out) == \
        ["work place", "args[0]: char *", "args[1]: int", "args[2]: int", "work plain"], result


def test_semaphore_in_bss(dtrace):
    """What the program prints is its semaphore's count at the end."""
    result = dtrace("-qn", 'marked$target:::bss { @ = sum(arg0); } END { printa("sum %@d\\n", @); }', "-c", PROGRAM)
    assert sorted(result.out.split()) == ["1", "6", "sum"], result


def test_not_traced(dtrace):
    result = dtrace("-qn", "BEGIN { }", "-c", PROGRAM)
    assert result.out.split() == ["0"], result
