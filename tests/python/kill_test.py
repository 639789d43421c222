"""A tracer that dies, or goes, leaves the traced program running, correct, and its semaphores at zero."""
import os
import pathlib
import signal

import pytest

import harness
from harness import semaphore, wait_until

DATA = pathlib.Path(__file__).parent / "data"
COUNT = "python$target:::%s { @[copyinstr(arg1)] = count(); }"
KERNEL = ("-x", "place=kernel")     # where semaphores tell who listens

pytestmark = [pytest.mark.needs_bpf, pytest.mark.alone]


class Target:
    """steps.py: calls functions until told to stop, then says whether it counted right."""

    def __init__(self, interp):
        self.interp = interp
        self.dir = interp.dir
        self.argv = interp.argv_of(DATA / "steps.py", interp.inside(self.dir))

    def wait_started(self):
        self.pid = int(wait_until(lambda: self._read("pid"), what="the target's start"))
        return self.pid

    def rounds(self):
        return int(self._read("rounds") or 0)

    def goes_on(self):
        before = self.rounds()
        wait_until(lambda: self.rounds() > before + 1, what="progress of the target")

    def stop(self):
        (self.dir / "stop").touch()
        return wait_until(lambda: self._read("result"), what="the target's result").strip()

    def _read(self, name):
        try:
            return (self.dir / name).read_text()
        except FileNotFoundError:
            return ""


def markers_of(interp):
    """A marker to trace, and those whose semaphores must be zero in the end."""
    listened = "function-entry" if interp.version == "3.9" else "audit"
    return listened, list(interp.markers)


def wait_released(pid, interp, markers):
    wait_until(lambda: all(semaphore(pid, interp, m) == 0 for m in markers), what="all semaphores at zero")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name)
@pytest.mark.interps("3.9", "3.13", "3.15")
def test_attached(interp, start, how):
    """-p: the target was there before, and is afterwards."""
    listened, markers = markers_of(interp)
    target = Target(interp)
    process = start(target.argv)
    pid = target.wait_started()
    assert semaphore(pid, interp, listened) == 0
    tracer = harness.dtrace_start("-q", *KERNEL, "-p", pid, "-n", COUNT % listened)
    wait_until(lambda: semaphore(pid, interp, listened) > 0 or tracer.poll() is not None, what="armed probe")
    target.goes_on()
    assert tracer.poll() is None, tracer.communicate()
    tracer.send_signal(how)
    result = harness.finish(tracer, tracer.args)
    assert result.code == (-signal.SIGKILL if how == signal.SIGKILL else 0), result
    wait_released(pid, interp, markers)
    target.goes_on()
    assert target.stop() == "correct"
    assert process.wait(timeout=harness.TIMEOUT_S) == 0


@pytest.mark.interps("3.9", "3.15")
def test_child_survives_sigkill(interp):
    """-c: the target is dtrace's child, and outlives it."""
    listened, markers = markers_of(interp)
    target = Target(interp)
    tracer = harness.dtrace_start("-q", *KERNEL, "-n", COUNT % listened, "-c", " ".join(target.argv),
                                  start_new_session=True)
    try:
        pid = target.wait_started()
        assert semaphore(pid, interp, listened) > 0
        target.goes_on()
        tracer.kill()
        tracer.wait(timeout=harness.TIMEOUT_S)
        wait_released(pid, interp, markers)
        target.goes_on()
        assert target.stop() == "correct"
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), what="the target's end")
    finally:
        (target.dir / "stop").touch()
        tracer.kill()
        tracer.communicate()


@pytest.mark.interps("3.9")
def test_target_killed(interp, start):
    """The other way round: the target dies, the tracer ends, prints what it has and exits with 0."""
    target = Target(interp)
    process = start(target.argv)
    pid = target.wait_started()
    tracer = harness.dtrace_start("-q", *KERNEL, "-p", pid, "-n", COUNT % "function-entry")
    wait_until(lambda: semaphore(pid, interp, "function-entry") > 0, what="armed probe")
    target.goes_on()
    process.kill()
    process.wait()
    result = harness.finish(tracer, tracer.args)
    assert result.code == 0 and "step" in result.out, result


@pytest.mark.interps("3.9")
def test_two_tracers(interp, start):
    """Each counts for itself.  The kernel raises the semaphore once for a place, however many listen to it."""
    target = Target(interp)
    start(target.argv)
    pid = target.wait_started()
    tracers = [harness.dtrace_start("-q", *KERNEL, "-p", pid, "-n", COUNT % "function-entry",
                                    "-n", 'BEGIN { printf("up\\n"); }') for _ in range(2)]
    for tracer in tracers:
        assert tracer.stdout.readline() == b"up\n"
    target.goes_on()
    for left, tracer in zip((1, 0), tracers):
        assert semaphore(pid, interp, "function-entry") == 1
        tracer.send_signal(signal.SIGINT)
        result = harness.finish(tracer, tracer.args)
        assert result.code == 0 and "step" in result.out, result
        target.goes_on()
        assert semaphore(pid, interp, "function-entry") == left
    assert target.stop() == "correct"
