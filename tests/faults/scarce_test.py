"""What is scarce, or stands still: room on a disk, descriptors, memory, the tracer itself."""
import os
import random
import resource
import signal
import subprocess

import pytest

import harness
import sweep

pytestmark = pytest.mark.needs_bpf

WAY = {way.name: way for way in sweep.WAYS}
MIB = 1 << 20


@pytest.fixture(params=["p-target", "p-kernel"])
def traced(request, tmp_path):
    """A sweep whose target runs, and had a tracer already."""
    run = sweep.Sweep(WAY[request.param], tmp_path, random.Random(1))
    run.environment = lambda: None
    run.once()
    run.target.settle()
    yield run
    run.close()


def limited(run, which, limit):
    """The command with a limit of its own: it ends well, or says what is missing; the target is as it was."""
    result = harness.run(run.way.argv(run.words()), timeout=sweep.LIMIT_S,
                         preexec_fn=lambda: resource.setrlimit(which, (limit, limit)))
    run.judge(result)
    run.target.check()


def test_disk_full(tmp_path):
    script = 'BEGIN { printf("%9000d", 1); exit(0); }'
    result = harness.run(["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=4k none "$1" && exec "$2" -q -o "$1/out" -n "$3"', "sh",
                          tmp_path, harness.DTRACE, script])
    assert result.code == 1 and "No space left on device" in result.err, result


@pytest.mark.parametrize("command", [[harness.DTRACE, "-qn", 'BEGIN { printf("x"); exit(0); }'],
                                     [harness.DTRACE, "-ln", "BEGIN"], [harness.DTRACE, "--help"],
                                     [harness.STAP, "-e", 'probe begin { print("x") exit() }'], [harness.STAP, "--help"],
                                     [harness.BUILD / "dtap", "--help"]], ids=lambda words: " ".join(map(str, words[1:])))
def test_output_full(command):
    with open("/dev/full", "w") as full:
        child = subprocess.run(list(map(str, command)), stdout=full, stderr=subprocess.PIPE, text=True, timeout=harness.TIMEOUT_S)
    assert child.returncode == 1 and "No space left on device" in child.stderr, child


@pytest.mark.slow
def test_descriptors_out(traced):
    for limit in range(4, 64, 1 if harness.NIGHTLY else 15):
        limited(traced, resource.RLIMIT_NOFILE, limit)
    traced.clean()


@pytest.mark.slow       # with sanitizers a process needs much more address space
def test_memory_out(traced):
    for limit in (16, 24, 64):
        limited(traced, resource.RLIMIT_AS, limit * MIB)
    traced.clean()


@pytest.mark.parametrize("way", ["p-target", "p-kernel-agent"])
def test_target_without_memory(way, tmp_path):
    """The agent is to come into a process that gets no more memory."""
    for more in (0, MIB) if not harness.NIGHTLY else (0, 64 << 10, MIB, 8 * MIB, 64 * MIB):
        run = sweep.Sweep(WAY[way], tmp_path, random.Random(1))
        run.environment = lambda: None
        try:
            run.start()
            with open(f"/proc/{run.target.pid}/statm") as statm:
                size = int(statm.read().split()[0]) * resource.getpagesize()
            resource.prlimit(run.target.pid, resource.RLIMIT_AS, (size + more, resource.RLIM_INFINITY))
            run.said = set()
            run.once()
            resource.prlimit(run.target.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            run.clean()
        finally:
            run.close()


@pytest.mark.parametrize("way", ["p-target", "p-kernel"])
def test_tracer_stopped(way, tmp_path):
    """While the tracer stands still its target goes on; then it tells what it has, and what it has lost."""
    run = sweep.Sweep(WAY[way], tmp_path, random.Random(1))
    script = sweep.D_EVENT + ' { n++; printf("%d\\n", n); } ' + 'tick-10ms /n > 5 && !up/ { up = 1; printf("up\\n"); }'
    try:
        run.start()
        tracer = harness.dtrace_start("-q", "-x", "place=" + way.split("-")[1], "-x", "bufsize=8k", "-n", script, "-p", run.target.pid)
        for line in tracer.stdout:
            if line == b"up\n":
                break
        os.kill(tracer.pid, signal.SIGSTOP)
        before = run.target.ask()["calls"]
        harness.wait_until(lambda: run.target.ask()["calls"] > before + 3000, what="the target's calls while the tracer is stopped")
        os.kill(tracer.pid, signal.SIGCONT)
        tracer.send_signal(signal.SIGINT)
        result = harness.finish(tracer, tracer.args)
        assert result.code == 0 and "drop" in result.err, result
        run.target.check()
    finally:
        run.close()
