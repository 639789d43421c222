"""Fixtures and markers of the end-to-end tests; tests/README.md shows how to use them."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import zlib

import pytest

try:
    from xdist.scheduler import LoadScheduling
except ImportError:
    LoadScheduling = None

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402

# pytest's rewritten tests are kept for the next worker and turn; programs that tests start write none (tools/check).
sys.dont_write_bytecode = False
sys.pycache_prefix = str(harness.BUILD / "pycache")

import fate  # noqa: E402
import ownroot  # noqa: E402
from golden import collector_of  # noqa: E402

collect_ignore = ["fate.py", "harness.py", "golden.py", "named.py", "ownroot.py", "sanitized.py", "serving.py", "ways.py"]


def pytest_configure(config):
    ownroot.make_mount_point()
    os.environ.pop("PYTHONUNBUFFERED", None)    # a line of a program would come in pieces, with others' between them
    # A shell's & and nohup leave these ignored, and programs that are started inherit that.
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for line in ("needs_root: skipped for others",
                 "needs_bpf: skipped, with the kernel's reason, where BPF or uprobes are refused",
                 "machine_pids(): compares with the kernel's own numbers of processes; skipped in a pid namespace, where others are seen",
                 "interps(*versions): the interpreters of a test that uses the fixture interp (default: all)",
                 "dies(*signals): programs of this test may die of these: \"SIGSEGV\" (see fate.py)",
                 "first: takes a minute, and so begins with the first ones",
                 "slow: takes seconds; only with --more",
                 "sanitizers: is for what sanitizers find: in that run in spite of being slow, and in each part of it",
                 "nightly: takes minutes, or another kernel; only under make nightly",
                 "alone: looks at, or disturbs, processes of other tests; nothing runs beside it under tools/check"):
        config.addinivalue_line("markers", line)


def pytest_addoption(parser):
    parser.addoption("--turn", choices=["together", "alone"],
                     help="only the tests that may run beside others, or only those marked alone (default: all)")
    parser.addoption("--part", metavar="K/N", type=lambda text: tuple(map(int, text.split("/"))), default=(1, 1),
                     help="only the Kth of N parts of the tests, by their names, and those marked sanitizers")
    parser.addoption("--more", action="store_true",
                     help="what continuous integration has: every test with interp on 3.9 and on one of the others in turn (default: on one "
                          "of these two), and those marked slow")
    parser.addoption("--whole", action="store_true", default=harness.NIGHTLY,
                     help="as --more, but every test with interp on each of its interpreters")


class OneByOne(LoadScheduling or object):
    """
    A worker has the test that it runs and the one after it.  pytest-xdist hands out hundreds at once: the long ones of a
    file then come one after another in one worker, and the others have nothing left to do.
    """

    def check_schedule(self, node, duration=0):
        if self.pending:
            self._send_tests(node, 2)
        elif not node.shutting_down:
            node.shutdown()

    def _send_tests(self, node, num):
        super()._send_tests(node, max(0, min(num, 2 - len(self.node2pending[node]))))


if LoadScheduling:
    def pytest_xdist_make_scheduler(config, log):
        return OneByOne(config, log)


def is_quick(config):
    """Is it make check's selection, which is less than --more?  Not where tests or a file are named."""
    return not (config.getoption("--more") or config.getoption("--whole") or config.option.keyword) and \
        all(os.path.isdir(arg) for arg in config.args)


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: (not item.get_closest_marker("first"), not item.get_closest_marker("slow")))
    turn, (part, parts) = config.getoption("--turn"), config.getoption("--part")
    quick = is_quick(config)
    if turn or parts > 1 or quick or not harness.NIGHTLY:
        def is_mine(item):
            if quick and item.get_closest_marker("slow"):
                return False
            if zlib.crc32(item.nodeid.encode()) % parts != part - 1 and not item.get_closest_marker("sanitizers"):
                return False
            if item.get_closest_marker("nightly") and not harness.NIGHTLY:
                return False
            return not turn or bool(item.get_closest_marker("alone")) == (turn == "alone")

        mine = [item for item in items if is_mine(item)]
        config.hook.pytest_deselected(items=[item for item in items if not is_mine(item)])
        items[:] = mine


def pytest_collect_file(file_path, parent):
    collector = collector_of(file_path)
    return collector.from_parent(parent, path=file_path) if collector else None


def pytest_generate_tests(metafunc):
    if "interp" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("interps")
        versions = marker.args if marker else harness.VERSIONS
        if not metafunc.config.getoption("--whole"):
            others = [version for version in versions if version != "3.9"]
            turn = zlib.crc32(metafunc.function.__name__.encode())
            versions = [version for version in versions if version == "3.9" or version == others[turn % len(others)]]
            if is_quick(metafunc.config):
                versions = versions[:1] if turn & 1 << 16 else versions[-1:]
        metafunc.parametrize("interp", versions, indirect=True, ids=[f"py{v}" for v in versions])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """What a failed test shows may be bytes that are no text: xdist cannot send those, and would end the whole run."""
    report = (yield).get_result()
    shown = str(report.longrepr or "")
    if shown != harness.text_of(shown):
        report.longrepr = harness.text_of(shown)
    report.sections = [(title, harness.text_of(text)) for title, text in report.sections]


# --- the fate of traced programs (fate.py) ---------------------------------------------------------------

def pytest_sessionstart(session):
    try:
        session.config.fate = fate.Watch() if os.geteuid() == 0 else None
    except OSError as error:
        session.config.fate = None
        print(f"how traced programs end is not watched: {error}")


def check_fate(item):
    """Fail when a process of the test has died of a signal that the test does not name."""
    if not item.config.fate:
        return
    marker = item.get_closest_marker("dies")
    deaths = [death for death in item.config.fate.deaths() if not marker or death.signal not in marker.args]
    assert not deaths, "; ".join(map(str, deaths))


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    (yield).get_result()
    check_fate(pyfuncitem)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item):
    check_fate(item)


# --- tests that reach others' processes ------------------------------------------------------------------

EVERY_PYTHON = re.compile(r"(?<![\w$:])py(thon)?\*:")
running = []            # the test
start_process = subprocess.Popen.__init__


def reaches_others(words):
    """Is it a script about every Python of the machine?  It brings the agent, and its thread, into those of the tests beside this one."""
    return any(EVERY_PYTHON.search(word) for word in words) and \
        not any(word in ("family", "unshare") or re.fullmatch(r"-[a-z]*l[a-z]*", word) for word in words)


def start_among_others(self, args, *more, **kwargs):
    words = [args] if isinstance(args, (str, bytes, os.PathLike)) else args
    assert not reaches_others([os.fsdecode(word) if isinstance(word, (bytes, os.PathLike)) else str(word) for word in words]) or \
        not running or running[0].get_closest_marker("alone"), f"{words} reaches other tests' processes: mark the test alone"
    start_process(self, args, *more, **kwargs)


subprocess.Popen.__init__ = start_among_others


# ---------------------------------------------------------------------------------------------------------

FIRST_PID_NAMESPACE = "pid:[4026531836]"       # PROC_PID_INIT_INO of the kernel


def pytest_runtest_setup(item):
    running[:] = [item]
    if (item.get_closest_marker("needs_root") or item.get_closest_marker("needs_bpf")) and os.geteuid() != 0:
        pytest.skip("needs root")
    if item.get_closest_marker("machine_pids") and os.readlink("/proc/self/ns/pid") != FIRST_PID_NAMESPACE:
        pytest.skip("the kernel's structures have the machine's numbers, and this is a pid namespace")
    if item.get_closest_marker("needs_bpf") and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())


@contextlib.contextmanager
def interpreter(version):
    """A harness.Interp; without that Python the test is skipped."""
    found = harness.interpreters().get(version, "tools/pythons does not know it")
    if isinstance(found, str):
        pytest.skip(f"no Python {version}: {found}")
    interp = harness.Interp(version, found)
    yield interp
    interp.close()


@pytest.fixture
def interp(request):
    """The test once for each interpreter of @pytest.mark.interps(...); see harness.Interp."""
    with interpreter(request.param) as interp:
        yield interp


@pytest.fixture
def made(request):
    """As interp, of a version that the test names itself: @pytest.mark.parametrize(..., indirect=["made"])."""
    with interpreter(request.param) as interp:
        yield interp


@pytest.fixture
def dtrace():
    """dtrace(*args, timeout=, cwd=, env=) -> a harness.Result, also as (code, out, err)."""
    return harness.dtrace


@pytest.fixture
def start():
    """start(argv) -> a Popen whose process is ended with the test, whatever happens."""
    children = []

    def start(argv, **kwargs):
        children.append(subprocess.Popen([str(word) for word in argv], **kwargs))
        return children[-1]

    yield start
    for child in children:
        if child.poll() is None:
            child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream:
                stream.close()
