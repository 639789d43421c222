"""dtrace -l: the probes of a process are the marker notes that readelf -n shows in its interpreter."""
import collections
import pathlib
import re
import subprocess

import pytest

pytestmark = pytest.mark.needs_root

SLEEP = "import time; print('ready', flush=True); time.sleep(120)"

Row = collections.namedtuple("Row", "id provider module function name")


def rows(result):
    """The rows under the heading "ID PROVIDER MODULE FUNCTION NAME".  A stripped file does not name
    the function of a marker that GCC moved to the cold part; dtrace's own probes have no module either."""
    assert result.code == 0, result
    heading, *lines = [line for line in result.out.splitlines() if re.match(r" *(ID|\d+) ", line)]
    assert re.fullmatch(r" +ID +PROVIDER +MODULE +FUNCTION NAME", heading), result
    found = []
    for line in lines:
        number, provider, *place, name = line.split()
        module, function = (place + ["", ""])[:2]
        found.append(Row(int(number), provider, module, function, name))
    return found


@pytest.fixture
def sleeper(interp, start):
    process = start(interp.argv_of(SLEEP), stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


AGENT = "dtap-agent.so"

# The eight of CPython's HOWTO.
MARKERS = {"function-entry", "function-return", "line", "gc-start", "gc-done", "import-find-load-start",
           "import-find-load-done", "audit"}


def names_of(interp):
    return {name.replace("__", "-") for name in interp.markers}


def supplied_of(interp):
    """What the agent supplies of the eight: what there is not, and what is unsound (3.11's and 3.15's)."""
    pair = set() if interp.version == "3.9" else {"function-entry", "function-return"}
    return MARKERS - names_of(interp) | pair | ({"line"} if interp.version == "3.11" else set())


def modules(found, names=MARKERS):
    """Name -> module, of the eight; no name may be there from two files."""
    by_name = collections.defaultdict(set)
    for row in found:
        by_name[row.name].add(row.module)
    assert all(len(files) == 1 for files in by_name.values()), found
    return {name: files.pop() for name, files in by_name.items() if name in names}


def own_and(interp, supplied):
    own = pathlib.Path(interp.executable).name
    return {name: AGENT if name in supplied else own for name in names_of(interp) | supplied}


def test_provider_of_a_process(dtrace, interp, sleeper):
    """What will be used: the interpreter's own markers where they are sound, else the agent's."""
    found = rows(dtrace("-l", "-P", f"python{sleeper.pid}"))
    assert modules(found) == own_and(interp, supplied_of(interp))
    assert {row.provider for row in found} == {f"python{sleeper.pid}"}
    assert len({row.id for row in found}) == len(found), "ids are unique"


@pytest.mark.interps("3.9", "3.15")
def test_target_macro(dtrace, interp, sleeper):
    found = rows(dtrace("-l", "-p", sleeper.pid, "-n", "python$target:::gc-*"))
    assert {row.name for row in found} == {"gc-start", "gc-done"}


@pytest.mark.interps("3.9")
def test_by_module_and_name(dtrace, interp, sleeper):
    provider = f"python{sleeper.pid}"
    every = rows(dtrace("-l", "-P", provider))
    entry = next(row for row in every if row.name == "function-entry")
    module = pathlib.Path(interp.executable).name
    assert {row[1:] for row in rows(dtrace("-l", "-m", f"{provider}:{module}"))} == \
        {row[1:] for row in every if row.module == module}
    assert [row[1:] for row in rows(dtrace("-l", "-n", f"{provider}:::function-entry"))] == [entry[1:]]


@pytest.mark.interps("3.9")
def test_all_processes(dtrace, interp, sleeper):
    found = rows(dtrace("-l", "-P", "python*"))
    assert f"python{sleeper.pid}" in {row.provider for row in found}


def test_native_alone(dtrace, interp, sleeper):
    found = rows(dtrace("-l", "-x", "agent=never", "-P", f"python{sleeper.pid}"))
    assert modules(found) == own_and(interp, set())
    found = rows(dtrace("-l", "-P", f"python{sleeper.pid}", "-n", "#pragma D option agent=never"))
    assert AGENT not in {row.module for row in found}


def test_agent_alone(dtrace, interp, sleeper):
    found = rows(dtrace("-l", "-x", "agent=always", "-P", f"python{sleeper.pid}"))
    assert modules(found) == own_and(interp, MARKERS)


@pytest.mark.interps("3.15")
def test_module_named(dtrace, interp, sleeper):
    """A description that names the file means it, sound or not."""
    own = pathlib.Path(interp.executable).name
    for module in (own, AGENT):
        found = rows(dtrace("-l", "-p", sleeper.pid, "-n", f"python$target:{module}::function-entry"))
        assert [row.module for row in found] == [module]


def test_command(dtrace, interp):
    found = rows(dtrace("-l", "-P", "python$target", "-c", interp.command("pass")))
    assert modules(found) == own_and(interp, supplied_of(interp))


def test_argument_types_of_the_agent(dtrace, interp, sleeper):
    """Those of CPython's HOWTO."""
    result = dtrace("-l", "-v", "-x", "agent=always", "-n", f"python{sleeper.pid}:::function-entry",
                    "-n", f"python{sleeper.pid}:::gc-done")
    types = re.findall(r"args\[\d\]: (.*)", result.out)
    assert result.code == 0 and types == ["char *", "char *", "int", "long"], result


@pytest.mark.interps("3.9")
def test_argument_types(dtrace, interp, sleeper):
    result = dtrace("-l", "-v", "-n", f"python{sleeper.pid}:::gc-start")
    assert result.code == 0 and re.search(r"Argument Types\s+args\[0\]: int\b", result.out), result


def test_by_id(dtrace):
    """Numbers are given when probes are found, so they hold for one run: dtrace's own are always the same."""
    assert [row.name for row in rows(dtrace("-l", "-i", "1"))] == ["BEGIN"]


def test_builtin_probes(dtrace):
    found = rows(dtrace("-l", "-P", "dtrace"))
    assert [(row.id, row.name) for row in found] == [(1, "BEGIN"), (2, "END"), (3, "ERROR")]


def test_nothing_matches(dtrace):
    result = dtrace("-l", "-P", "nosuchprovider")
    assert result.code == 1 and "nosuchprovider" in result.err, result
    result = dtrace("-l", "-n", "nosuch:::probe")
    assert result.code == 1 and "nosuch:::probe" in result.err, result
