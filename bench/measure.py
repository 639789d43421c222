"""What the questions share: a program whose calls are the events, rounds, medians."""
import collections
import ctypes
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import harness
import peer

ROUNDS = 5

# Says that it is there, waits for a line, calls, and says how many seconds that took.
PROGRAM = """
import sys, time

def leaf():
    pass

def work(calls):
    begin = time.perf_counter()
    for _ in range(calls):
        leaf()
    return time.perf_counter() - begin

print("ready", flush=True)
sys.stdin.readline()
print(work(int(sys.argv[1])), flush=True)
"""


def interpreter(version):
    found = harness.interpreters()[version]
    if isinstance(found, str):
        sys.exit(f"bench: no Python {version}: {found}")
    return harness.Interp(version, found)


LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def start(argv, **kwargs):
    """subprocess.Popen() of what would go on for ever: the kernel kills it when this process ends, however that comes about."""
    bench = os.getpid()

    def end_with_bench():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != bench:
            os._exit(1)

    return subprocess.Popen(argv, preexec_fn=end_with_bench, **kwargs)


class Run(collections.namedtuple("Run", "seconds output errors")):
    """One traced run of PROGRAM: its own time, what the tracer printed (a path) and said on stderr."""


def traced(interp, calls, tracer_argv=None, env=None, output=os.devnull, listens="function-entry"):
    """Run PROGRAM while a tracer listens.  The tracer is up when the marker's semaphore says so; "PID" in its
    arguments is replaced.  Without a tracer: untraced."""
    program = start(interp.argv_of(PROGRAM, calls), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "ready\n"
        tracer, errors = None, ""
        if tracer_argv:
            with open(output, "wb") as out:
                tracer = start([word.replace("PID", str(program.pid)) for word in tracer_argv], env=env,
                               stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
            harness.wait_until(lambda: tracer.poll() is not None or
                               harness.semaphore(program.pid, interp, listens) > 0, what="the tracer's start")
            if tracer.poll() is not None:
                raise SystemExit(f"{tracer_argv[0]} ended early:\n{tracer.stderr.read().decode()}")
            time.sleep(0.2)         # the other probes, if any, and the cold caches of its start
        seconds = float(program.communicate("go\n", timeout=300)[0])
    finally:
        program.kill()
        program.wait()
    if tracer:
        time.sleep(0.2)
        errors = harness.interrupt(tracer, 300)[1].decode(errors="replace")
    return Run(seconds, output, errors)


def added_cost(calls, dtap_clause, peer_clause, rounds=ROUNDS, check=None):
    """Print the nanoseconds that each tracer adds to a call of leaf(): function-entry on Python 3.9."""
    interp = interpreter("3.9")
    dtap_argv = [str(harness.DTRACE), "-q", "-x", "place=kernel", "-p", "PID", "-n", f"python$target:::function-entry {dtap_clause}"]
    peer_argv = peer.argv(f"{peer.marker(interp, 'function-entry')} {peer_clause}")
    added = {"dtap": [], peer.VERSION: []}
    notes = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="dtap-bench-") as folder:
        for _ in range(rounds):
            base = traced(interp, calls).seconds
            for name, argv, env in (("dtap", dtap_argv, None), (peer.VERSION, peer_argv, peer.environment())):
                run = traced(interp, calls, argv, env, f"{folder}/out")
                added[name].append((run.seconds - base) / calls * 1e9)
                if check:
                    notes[name].append(check(run))
    interp.close()
    for name, values in added.items():
        row(name, values, "ns per event", "; ".join(sorted(set(filter(None, notes[name])))))
    ratio(added["dtap"], added[peer.VERSION])


def row(name, values, unit, note=""):
    print(f"    {name:<16} {statistics.median(values):8.1f} {unit}   ({min(values):.1f} to {max(values):.1f})"
          f"{'   ' + note if note else ''}", flush=True)


def ratio(ours, theirs):
    print(f"    ratio            {statistics.median(ours) / statistics.median(theirs):8.2f}", flush=True)


def wall_and_memory(argv, env=None):
    """Milliseconds from start to exit, and the peak resident memory in MB."""
    begin = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, env or os.environ,
                          file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)])
    _, status, usage = os.wait4(pid, 0)
    elapsed_ms = (time.perf_counter() - begin) * 1e3
    if status:
        raise SystemExit(f"{' '.join(argv)}: status {status:#x}")
    return elapsed_ms, usage.ru_maxrss / 1024
