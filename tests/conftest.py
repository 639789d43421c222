"""Fixtures and markers of the end-to-end tests; tests/README.md shows how to use them."""
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402
from golden import collector_of  # noqa: E402

collect_ignore = ["harness.py", "golden.py"]


def pytest_configure(config):
    for line in ("needs_root: skipped for others",
                 "needs_bpf: skipped, with the kernel's reason, where BPF or uprobes are refused",
                 "interps(*versions): the interpreters of a test that uses the fixture interp (default: all)",
                 "slow: takes seconds; left out of the sanitizer run of continuous integration",
                 "alone: looks at, or disturbs, processes of other tests; nothing runs beside it under tools/check"):
        config.addinivalue_line("markers", line)


def pytest_addoption(parser):
    parser.addoption("--turn", choices=["together", "alone"],
                     help="only the tests that may run beside others, or only those marked alone (default: all)")


def pytest_collection_modifyitems(config, items):
    turn = config.getoption("--turn")
    if turn:
        def is_mine(item):
            return bool(item.get_closest_marker("alone")) == (turn == "alone")

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
        metafunc.parametrize("interp", versions, indirect=True, ids=[f"py{v}" for v in versions])


def pytest_runtest_setup(item):
    if (item.get_closest_marker("needs_root") or item.get_closest_marker("needs_bpf")) and os.geteuid() != 0:
        pytest.skip("needs root")
    if item.get_closest_marker("needs_bpf") and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())


@pytest.fixture
def interp(request):
    """The test once for each interpreter of @pytest.mark.interps(...); see harness.Interp."""
    found = harness.interpreters().get(request.param, "tools/pythons does not know it")
    if isinstance(found, str):
        pytest.skip(f"no Python {request.param}: {found}")
    interp = harness.Interp(request.param, found)
    yield interp
    interp.close()


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
