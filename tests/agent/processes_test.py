"""A session of a program's processes counts exactly while others come and go at random, and processes begin, end and are killed."""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import pytest

import harness
from agent.agent_test import end, ready
from agent.control_test import ask
from agent.sessions_test import KINDS, WORK, dice_of

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_bpf]

HERE = pathlib.Path(__file__).parent
STEPS = 40 if harness.NIGHTLY else 8
FLAGS = "-W", "ignore"      # of forks with threads, of which a work() has some

WAYS = ("fork", "fork_and_finish", "fork_in_c", "fork_from_thread", "daemon", "daemon that closes", "run", "run_after_python",
        "run_by_shell", "spawn", "fork_and_execute", "multiprocessing fork", "multiprocessing spawn", "multiprocessing forkserver", "stays")
LATER = "fork", "fork_and_finish", "daemon", "run", "fork_and_execute", "multiprocessing fork", "spawn"
ENDS = "returns", "leaves", "exits", "killed", "killed inside", "killed by the test", "terminated"
# What the processes have of themselves is not counted: threads, collections at the end.
COUNTED = [kind for kind in KINDS if kind not in ("gc", "thread")]
SEED = f"DTAP_SEED={os.environ.get('DTAP_SEED', 14)}"
NOTHING = [0, 0, "function", True]
PIPE, SOCKET = "pipe:[N]", "socket:[N]"


def steps_of(dice, n, ways=WAYS):
    return [[way := dice.choice(ways), dice.randrange(3), "returns" if way == "stays" else dice.choice(ENDS),
             steps_of(dice, dice.choice((0, 0, 0, 1, 2)), LATER) if n > 2 and way != "stays" else []] for _ in range(n)]


class Program:
    """data/processes.py, at work or about to be; @tracer are the words of a tracer that starts the command behind them."""

    def __init__(self, interp, name="program", tracer=()):
        self.folder = interp.dir / name
        for folder in self.folder, self.folder / "log", self.folder / "kill":
            folder.mkdir()
        interp.add(WORK, f"{name}/work.py")
        argv = [*interp.argv, *FLAGS, interp.add(HERE / "data/processes.py", f"{name}/processes.py")]
        self.child = subprocess.Popen([*tracer, " ".join(argv)] if tracer else argv, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ready(self.child)
        self.pid = self.reports()[0][0]
        self.before = self.has()[0]

    def begin(self, steps):
        self.begun = time.monotonic()
        self.child.stdin.write(json.dumps(steps) + "\n")
        self.child.stdin.flush()

    def is_at_work(self):
        """Kills those that wait for it."""
        for file in (self.folder / "kill").iterdir():
            file.unlink()
            os.kill(int(file.name), signal.SIGKILL)
        return harness.is_at_work(self.child, self.begun)

    def has(self):
        """What its descriptors are, and how many threads it has."""
        files = [os.readlink(f"/proc/{self.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{self.pid}/fd")]
        return sorted(re.sub(r"\d+]$", "N]", file) for file in files), len(os.listdir(f"/proc/{self.pid}/task"))

    def works(self):
        """By process: how many works it has done and begun, and whether it was another program then, or had closed its descriptors."""
        told = {int(file.name): file.read_text() for file in (self.folder / "log").iterdir()}
        return {pid: (text.count(")"), text.count("("), "x" in text, "c" in text) for pid, text in told.items()}

    def reports(self):
        return json.loads(ask(self.child, "report"))


def d_script(kind, followed):
    """Counts by process."""
    probe, where, _ = KINDS[kind]
    if followed:
        probe = probe.replace("$target", "*")
    more = "@[pystack()] = count();" if kind == "stack" else ""
    return ["-q", "-x", "family" if followed else "place=target", "-n",
            f'{probe} /{where}/ {{ @n[pid] = count(); {more} }} tick-10ms /!up/ {{ up = 1; printf("up\\n"); }}'
            'END { printa("%d %@d\\n", @n);' + ("trunc(@);" if more else "") + "trunc(@n); }"]


STAP = """
global n, up
probe process.mark("function__entry") { if (user_string($arg2) == "leaf") n[pid()]++ }
probe timer.ms(10) { if (!up++) println("up") }
probe end { foreach (p in n) println(p, " ", n[p]) }
"""


class Session:
    """A tracer of a process that runs; what it has counted by process."""

    def __init__(self, how, kind, pid):
        argv = [harness.STAP, "--place=target", "-e", STAP, "-x", pid] if how == "stap" else \
               [harness.BUILD / "dtap", "calls", "leaf", "-p", pid] if how == "calls" else \
               [harness.DTRACE, *d_script(kind, how == "family"), "-p", pid]
        self.child = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)

    def wait_up(self):
        """False: it has ended without that."""
        assert select.select([self.child.stdout], [], [], harness.TIMEOUT_S)[0], harness.where_they_stand(self.child.pid)
        return self.child.stdout.readline() == b"up\n"

    def end(self, signal_number=signal.SIGINT):
        self.child.send_signal(signal_number)
        return harness.finish(self.child, self.child.args)


def counted(text):
    return {int(pid): int(n) for pid, n in (line.split() for line in text.splitlines() if " " in line)}


class Others:
    """Tracers of any process of the program's, which come and go as the dice have it."""

    def __init__(self, dice, program):
        self.dice, self.program, self.live, self.told = dice, program, [], []

    def turn(self):
        if self.live and self.dice.random() < 0.5:
            self.leave(self.live.pop(self.dice.randrange(len(self.live))))
        elif len(self.live) < 3:
            self.come()

    def come(self):
        self.told.append((self.dice.choice(("process", "family", "stap", "calls")), self.dice.choice([*KINDS]),
                          self.dice.choice(harness.family(self.program.pid))))
        session = Session(*self.told[-1])
        if self.told[-1][0] != "calls" and self.dice.random() < 0.7:
            session.wait_up()
        self.live.append(session)

    def leave(self, session):
        how = self.dice.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL))
        result = session.end(how)
        assert result.code in (0, 1, -how), (SEED, self.told, result)     # 1: its process has ended, or is no Python

    def end(self):
        while self.live:
            self.leave(self.live.pop())


def check_counts(seen, works, each, exact, why):
    """Each process that was to be seen is, as often as it has done work, and no other one."""
    for pid, (done, begun, anew, closed) in works.items():
        least, most = (each * done, each * begun) if pid in exact else (0, 0)
        if anew or closed:
            least = 0
        assert least <= seen.get(pid, 0) <= most, (pid, seen, works, why)
    assert set(seen) <= set(works), (seen, works, why)


def check_said(said, works, why):
    """What is missing is said of processes of other programs, and of those that have closed what they need for it."""
    for line in said.splitlines():
        if "agent supplies" in line or re.fullmatch(harness.LATE, line + "\n"):
            continue
        pid = re.search(r"process (\d+)", line)
        assert pid and any(works.get(int(pid[1]), (0, 0, True))[2:]), (said, why)


def work_amid_others(program, others, steps):
    program.begin(steps)
    while program.is_at_work():
        others.turn()
    assert program.child.stdout.readline() == "done\n", (SEED, steps, others.told, program.child.communicate())
    others.end()


def check(how, kind, program, told, why):
    """What the session has told."""
    out, said = told
    works = program.works()
    followed = how in ("family", "command")
    check_counts(counted(out), works, KINDS[kind][2], works if followed else {program.pid}, (why, said))
    check_said(said, works, (why, program.pid, works))


def holds(interp, how, kind):
    """The session is of a process that runs."""
    dice = dice_of(how, kind, interp.version)
    steps = steps_of(dice, STEPS)
    program, session = Program(interp), None
    others = Others(dice, program)
    why = SEED, steps, others.told
    try:
        session = Session(how, kind, program.pid)
        assert session.wait_up(), session.child.communicate()
        work_amid_others(program, others, steps)
        result = session.end()
        assert result.code == 0, result
        check(how, kind, program, (result.out, result.err), why)
        check_clean(program, why)
        assert end(program.child) == []
    finally:
        for child in [program.child, *(other.child for other in others.live), *([session.child] if session else [])]:
            child.kill()


def wait_until(condition, what, found):
    """As the harness does, and says what there is instead."""
    try:
        harness.wait_until(condition, what=what)
    except AssertionError as error:
        raise AssertionError((str(error), *found()))


def check_clean(program, why):
    """Nothing of the tracers is left in the processes that live on."""
    wait_until(lambda: all(found == NOTHING for _, *found in program.reports()), "hooks that are gone", lambda: (program.reports(), why))
    pids = [pid for pid, *_ in program.reports()]

    def raised():
        return [(pid, name) for pid in pids for name, value in (harness.agent_semaphores(pid) or {}).items() if value]
    # A session of all processes, of a test beside this one, raises its markers' semaphores here, too, until it ends.
    wait_until(lambda: not raised(), "semaphores at zero", lambda: (raised(), why))
    # Pipes are multiprocessing's, which keeps those of its helpers; an agent keeps two sockets, by which its thread is woken.
    sockets = 2 + len(program.reports()) - 1

    def is_left():
        files, threads = program.has()
        return threads, [file for file in files if file not in (*program.before, PIPE, SOCKET)], max(files.count(SOCKET), sockets)
    wanted = 1, [], sockets
    wait_until(lambda: is_left() == wanted, "nothing that is left", lambda: (program.before, program.has(), why))


@pytest.mark.parametrize("kind", COUNTED if harness.NIGHTLY else ("entry",))
def test_of_a_process(interp, kind):
    holds(interp, "process", kind)


@pytest.mark.parametrize("kind", COUNTED if harness.NIGHTLY else ("return", "stack"))
def test_of_a_family(interp, kind):
    """The process and what it starts."""
    holds(interp, "family", kind)


def test_of_a_process_by_stap(interp):
    holds(interp, "stap", "entry")


@pytest.mark.parametrize("kind", COUNTED if harness.NIGHTLY else ("function",))
def test_of_a_command(interp, kind, tmp_path):
    """It has the agent from its start on, and so has what it starts, unless its root is another one."""
    dice = dice_of("command", kind, interp.version)
    steps = steps_of(dice, STEPS)
    out = tmp_path / "out"
    program = Program(interp, tracer=[harness.DTRACE, *d_script(kind, True), "-o", out, "-c"])
    others = Others(dice, program)
    try:
        work_amid_others(program, others, steps)
        told, said = program.child.communicate("go\n", timeout=harness.TIMEOUT_S)
        assert (program.child.returncode, told) == (0, ""), (program.child.returncode, told, said)
        check("command", kind, program, (out.read_text(), said), (SEED, steps, others.told))
    finally:
        for child in [program.child, *(other.child for other in others.live)]:
            child.kill()
