"""A CPython on musl (tools/pythons musl): at its start and while it runs, in both places; the agent that it loads itself."""
import os
import pathlib
import re
import signal
import subprocess
import threading

import pytest

import harness

CACHE = pathlib.Path(os.environ.get("DTAP_CACHE", "/var/cache/dtap"))
PYTHON = CACHE / "musl/3.11/bin/python3"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no CPython on musl: sudo tools/pythons musl")

# Four threads, each with 500 calls once they are let go.
PROGRAM = """
import signal, threading
def leaf(n): return n
def work():
    go.wait()
    for i in range(500): leaf(i)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
go = threading.Event()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
print("started", flush=True)
if WAITS: signal.sigwait({signal.SIGTERM})
go.set()
for thread in threads: thread.join()
"""
SCRIPT = ('BEGIN { printf("armed\\n"); } python$target:::function-entry /copyinstr(arg1) == "leaf"/ { @n[tid] = count(); } '
          'END { printa("%d %@d\\n", @n); }')

FUNCTION = SCRIPT.replace('python$target:::function-entry /copyinstr(arg1) == "leaf"/', "py$target:__main__:leaf:entry")
STAP = ('global n, all probe begin { println("armed") } probe python3.module("__main__").function("leaf").call { n[tid()]++; if (++all == 2000) exit() } '
        'probe end { foreach (t in n) println(t, " ", n[t]) }')


STAP_MARK = STAP.replace('python3.module("__main__").function("leaf").call { ', 'process(@1).mark("function__entry") { if (user_string($arg2) != "leaf") next; ')
assert STAP_MARK != STAP


def check_counts(text):
    assert [n for _, n in re.findall(r"^(\d+) (\d+)$", text, re.M)] == ["500"] * 4, text


@pytest.mark.needs_bpf
@pytest.mark.parametrize("place", ["kernel", "target"])
def test_from_the_start(place, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.replace("WAITS", "False"))
    result = harness.dtrace("-x", f"place={place}", "-x", "agent=always", "-qn", SCRIPT, "-c", f"{PYTHON} -S {tmp_path}/program.py")
    assert result.code == 0, result
    check_counts(result.out)


@pytest.mark.alone
@pytest.mark.needs_root
def test_from_the_start_beside_others(tmp_path):
    """Tracers of all Pythons come while -c's agent is being loaded, and do not bring a second one, which would count as well."""
    (tmp_path / "program.py").write_text(PROGRAM.replace("WAITS", "False"))
    is_over = threading.Event()

    def others():
        while not is_over.is_set():
            harness.dtrace("-x", "place=target", "-qn", "python*:::function-entry { @ = count(); } tick-300ms { exit(0); }")

    tracers = [threading.Thread(target=others) for _ in range(2)]
    for tracer in tracers:
        tracer.start()
    try:
        for _ in range(12):
            result = harness.dtrace("-x", "place=target", "-x", "agent=always", "-qn", SCRIPT, "-c", f"{PYTHON} -S {tmp_path}/program.py")
            assert result.code == 0, result
            check_counts(result.out)
    finally:
        is_over.set()
        for tracer in tracers:
            tracer.join()


@pytest.mark.needs_bpf
@pytest.mark.parametrize("place", ["kernel", "target"])
@pytest.mark.parametrize("tracer", [("dtrace", "-x", "agent=always", "-qn", SCRIPT, "-p"), ("dtrace", "-qn", FUNCTION, "-p"),
                                    ("stap", "-e", STAP, "-x"), ("stap", "-e", STAP_MARK.replace("@1", f'"{PYTHON}"'), "-x")],
                         ids=["marker", "function", "stap", "stap's marker"])
def test_while_it_runs(place, tracer, tmp_path):
    """Its threads are older than the agent, which finds their variables there."""
    (tmp_path / "program.py").write_text(PROGRAM.replace("WAITS", "True"))
    program = subprocess.Popen([PYTHON, "-S", tmp_path / "program.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "started\n"
        options = ["-x", f"place={place}"] if tracer[0] == "dtrace" else [f"--place={place}"]
        tracer = subprocess.Popen([harness.BUILD / tracer[0], *options, *tracer[1:], str(program.pid)], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert tracer.stdout.readline() == b"armed\n", tracer.communicate()
        program.send_signal(signal.SIGTERM)
        result = harness.finish(tracer, ["tracer"])
        assert result.code == 0 and program.wait(harness.TIMEOUT_S) == 0, result
        check_counts(result.out)
    finally:
        program.kill()
        program.wait()


@pytest.mark.needs_root
def test_loaded_by_the_interpreter(tmp_path):
    """dtap agent install chooses the object that musl takes; it is loaded while the interpreter runs."""
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    result = harness.run([harness.BUILD / "dtap", "agent", "install", "--python", python])
    assert result.code == 0, result
    [installed] = (tmp_path / "env").rglob("dtap-agent.so")
    assert installed.read_bytes() == harness.AGENT.with_name("dtap-agent-musl.so").read_bytes()
    assert "agent: installed\n" in harness.run([harness.BUILD / "dtap", "agent", "status", "--python", python]).out
