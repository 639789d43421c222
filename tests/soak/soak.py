#!/usr/bin/python3
"""Random scripts over random Python programs, with random ends: what must hold whatever happens.

    tests/soak/soak.py [--seconds N] [--rounds N] [--seed S] [--python 3.9,3.11] [--place auto,target,kernel] [-v]

Each round is made from the seed and its number alone, so "--seed S --first N --rounds 1" does round N again (the moment
of a kill aside).  A round starts a program, under dtrace (-c) or before it (-p), with one to three tracers, and lets them
come to their ends, or kills one of them: the program or a tracer, by SIGKILL, SIGINT or SIGTERM, at some moment.  Then

- the program, unless it was killed, has done its work right and ended as it would have by itself;
- what a tracer printed that saw all of it is what the program's plan says;
- no tracer crashed, or complained of what nobody knows;
- when the tracers have gone the program has none of their memory, descriptors or hooks and no semaphore is up, its calls
  are as fast as before, and the tracers leave no process, file or socket behind.

The build under test is $DTAP_BUILD.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402
from programs import Program  # noqa: E402
from scripts import Script  # noqa: E402

KNOWN_WORDS = re.compile(
    r"^(# dtrace: .*"
    r"|dtrace: error in dt_clause_\d+ for probe ID \d+ .*"
    r"|dtrace: \d+ (dynamic variable |aggregation |speculative )?drops?( on CPU \d+)?.*"
    r"|dtrace: \d+ failed speculations? .*"
    r"|dtrace: pid \d+ (has exited|terminated by signal .*|exited with status \d+)"
    r"|dtrace: (description|script) .* matched \d+ probes?"
    r"|)$")
# A tracer whose target goes away, or is killed, before it is ready.
TOO_LATE = re.compile(
    r"^dtrace: (failed to grab pid|.* (has gone|has ended|ended before|Interrupted system call|exited)"
    r"|.*does not let its agent begin|.*takes no more tracers|.*No such process|invalid probe specifier|failed to compile"
    r"|.*no thread came to|.*ptrace is not permitted)", re.M)
UP = 'tick-20ms /!up/ { up = 1; printf("up\\n"); }'
# A marker of the agent, or of 3.9, is slow by a trap as long as it is armed.
SLOWER = 3
TIMEOUT_S = 60


class Failed(Exception):
    pass


def processes_of(folder):
    """The living processes that have the folder's name in their command."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if os.fsencode(folder) in words and state not in "ZX" and int(pid) != os.getpid():
            found.append((int(pid), words.replace(b"\0", b" ").decode(errors="replace")[:200]))
    return found


class Tracer:
    def __init__(self, round_, script, number, how):
        self.script, self.number = script, number
        self.path = round_.dir / f"script{number}.d"
        self.path.write_text(script.text + (UP if how[0] == "-p" else "") + "\n")
        self.out, self.err = (round_.dir / f"{what}{number}" for what in ("out", "err"))
        argv = [harness.DTRACE, "-q", "-x", f"place={round_.place}", *script.options, "-s", self.path, *how]
        self.argv = [str(word) for word in argv]
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.killed = None

    def text(self):
        return self.out.read_text(errors="replace"), self.err.read_text(errors="replace")

    def kill(self, sig):
        self.killed = sig
        self.process.send_signal(sig)


class Round:
    def __init__(self, seed, number, options):
        self.rnd = rnd = random.Random(f"{seed} {number}")
        self.number, self.verbose = number, options.verbose
        version = rnd.choice(options.python)
        argv = harness.interpreters()[version]
        if isinstance(argv, str):
            raise SystemExit(f"no Python {version}: {argv}")
        self.interp = harness.Interp(version, argv)
        self.dir = self.interp.dir
        self.place = rnd.choice(options.place)
        self.attach = rnd.random() < 0.6
        # An agent comes into what is executed later by LD_PRELOAD alone, which names no file under another root.
        native = version == "3.9" and self.place == "kernel"
        self.program = Program(rnd, native or (not self.attach and not self.interp.root))
        self.scripts = [Script(rnd, self.program, self.place) for _ in range(rnd.choice((1, 1, 1, 2, 3)) if self.attach else 1)]
        self.end = rnd.choice(("none", "none", "none", "tracer", "tracer", "program", "early"))
        self.signal = rnd.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM))
        self.delay = rnd.expovariate(1 / 0.2)
        self.tracers, self.process, self.pid, self.failed = [], None, 0, False

    def __str__(self):
        return (f"round {self.number}: Python {self.interp.version}, place={self.place}, "
                f"{'-p' if self.attach else '-c'}, {len(self.scripts)} tracer(s), "
                f"{self.end}{'' if self.end in ('none', 'late') else ' ' + signal.Signals(self.signal).name}")

    # --- the program -------------------------------------------------------------------------------------

    def path(self, name):
        return self.dir / name

    def read(self, name):
        try:
            return self.path(name).read_text()
        except FileNotFoundError:
            return ""

    def tell(self, name):
        self.path(name).touch()

    def wait(self, what, condition):
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.005)
        raise Failed(f"{what}: not within {TIMEOUT_S} s")

    def alive(self):
        try:
            return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    # --- a round -----------------------------------------------------------------------------------------

    def run(self):
        command = self.interp.argv_of(self.program.text)
        self.path("plan").write_text(self.program.plan)
        if self.attach:
            self.start(command)
        else:
            self.tracers.append(Tracer(self, self.scripts[0], 0, ["-c", " ".join(command)]))
        if self.end == "early":
            self.kill_early()
        else:
            self.wait("the program's start", lambda: self.read("pid") or self.tracer_ended())
            if not self.read("pid"):
                raise Failed("the tracer ended before the program began")
            self.pid = int(self.read("pid"))
        if self.end == "none":
            self.wait("the tracers", lambda: not self.attach or all("up\n" in t.text()[0] or t.process.poll() is not None
                                                                    for t in self.tracers))
        self.tell("go")
        if self.end in ("tracer", "program"):
            self.kill()
        self.finish()

    def start(self, command):
        with open(self.path("out"), "wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.wait("the program's start", lambda: self.read("pid") or self.process.poll() is not None)
        self.pid = int(self.read("pid"))
        self.files = self.descriptors()
        self.tracers = [Tracer(self, script, k, ["-p", self.pid]) for k, script in enumerate(self.scripts)]
        if self.end in ("tracer", "program"):
            time.sleep(min(self.rnd.expovariate(1 / 0.1), 1))

    def descriptors(self):
        return sorted(os.readlink(f"/proc/{self.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{self.pid}/fd"))

    def tracer_ended(self):
        return any(tracer.process.poll() is not None for tracer in self.tracers)

    def kill_early(self):
        """A tracer at a moment when it is not up yet."""
        time.sleep(min(self.delay / 4, 0.3))
        tracer = self.rnd.choice(self.tracers)
        tracer.kill(self.signal)
        tracer.process.wait(timeout=TIMEOUT_S)
        self.wait("the program's start", lambda: self.read("pid") or not processes_of(self.dir.name))
        self.pid = int(self.read("pid") or 0)

    def kill(self):
        time.sleep(min(self.delay, 1))
        if self.end == "tracer":
            self.rnd.choice(self.tracers).kill(self.signal)
        elif self.signal == signal.SIGTERM and self.attach or self.signal == signal.SIGKILL:
            self.end = "program"
            try:
                os.kill(self.pid, self.signal)
            except ProcessLookupError:
                pass
        else:
            self.end = "late"

    def finish(self):
        if self.pid and self.end != "program":
            self.wait("the program's work", lambda: self.path("done").exists() or not self.alive())
        # The tracers end with their targets; let them go by themselves, or by Ctrl-C while the target lives on.
        by_hand = self.pid and self.end != "program" and self.attach and self.rnd.random() < 0.5
        if by_hand:
            for tracer in self.tracers:
                if not tracer.killed and tracer.process.poll() is None and "up\n" in tracer.text()[0]:
                    tracer.kill(signal.SIGINT)
        gone = all(tracer.killed for tracer in self.tracers)
        if gone:
            for tracer in self.tracers:
                tracer.process.wait(timeout=TIMEOUT_S)
        if gone and self.pid and self.end != "program":
            self.check_left_alone()
        self.tell("measure")
        self.tell("stop")
        for tracer in self.tracers:
            try:
                tracer.process.wait(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise Failed(f"tracer {tracer.number} does not end") from None
        if self.process:
            self.process.wait(timeout=TIMEOUT_S)
        self.wait("the end of all processes", lambda: not processes_of(self.dir.name))
        self.check_program()
        for tracer in self.tracers:
            self.check_tracer(tracer)

    # --- what must hold ----------------------------------------------------------------------------------

    def check_left_alone(self):
        def state():
            try:
                maps = pathlib.Path(f"/proc/{self.pid}/maps").read_text()
                up = {name for name, value in (harness.agent_semaphores(self.pid) or {}).items() if value}
                own = {name for name in self.interp.markers if harness.semaphore(self.pid, self.interp, name)}
            except OSError:
                return "gone"
            return ([line for line in maps.splitlines() if re.search("dtap-(image|data|code)", line)],
                    sorted(up), sorted(own))

        try:
            self.wait("the tracers' traces", lambda: state() in ("gone", ([], [], [])))
        except Failed as error:
            raise Failed(f"{error}: {state()}") from None
        if self.attach:
            own = ("socket:", "anon_inode:[eventpoll]", "anon_inode:[eventfd]", "pipe:")
            more = [name for name in self.descriptors() if name not in self.files and not name.startswith(own)]
            if more:
                raise Failed(f"descriptors left: {more}")
        self.tell("measure")
        self.wait("a measurement", lambda: self.read("result") or not self.alive())
        if not self.read("result"):
            return
        speed, hooks = json.loads(self.read("result"))
        if hooks:
            raise Failed(f"hooks left: {hooks}")
        before = float(self.read("speed"))
        if self.attach and speed > SLOWER * before:
            raise Failed(f"calls take {speed / before:.1f} times as long as before")

    def check_program(self):
        if self.end == "program" or not self.pid:
            return
        out = self.read("out") if self.attach else self.tracers[0].text()[0]
        if "right\n" not in out or "Traceback" in out + (self.tracers[0].text()[1] if not self.attach else ""):
            raise Failed(f"the program went wrong:\n{out[-2000:]}")
        if self.process and self.process.returncode != self.program.code:
            raise Failed(f"the program ended with {self.process.returncode}, not {self.program.code}")

    def check_tracer(self, tracer):
        out, err = tracer.text()
        code = tracer.process.returncode
        if harness.SANITIZER_REPORT.search(err):
            raise Failed(f"a sanitizer reports:\n{err[-6000:]}")
        late = tracer.killed or self.end in ("early", "program") or (self.end in ("tracer", "late") and "up\n" not in out)
        if code < 0 and -code != tracer.killed or code > 1 or (code == 1 and not late):
            raise Failed(f"tracer {tracer.number} ended with {code}:\n{err[-2000:]}")
        if code == 1 and not TOO_LATE.search(err) and not (tracer.killed and not err):
            raise Failed(f"tracer {tracer.number} ended with 1 and said\n{err[-2000:]}")
        strange = [line for line in err.splitlines() if not KNOWN_WORDS.match(line)]
        if strange and code == 0 and self.end != "program":
            raise Failed(f"tracer {tracer.number} said\n" + "\n".join(strange[:20]))
        complete = self.end == "none" and code == 0 and self.pid
        if complete:
            try:
                tracer.script.check(out, err)
            except AssertionError as error:
                raise Failed(f"tracer {tracer.number}: {error}\n{err[-500:]}") from None

    def clean_up(self):
        for tracer in self.tracers:
            if tracer.process.poll() is None:
                tracer.process.kill()
                tracer.process.wait()
        # One that is being executed right now has no words to be known by.
        for _ in range(5):
            for pid, _ in processes_of(self.dir.name):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if self.end == "none" and not self.failed:
                break
            time.sleep(0.02)
        if self.process:
            self.process.wait()

    def keep(self, folder):
        to = pathlib.Path(folder) / f"round{self.number}"
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.dir, to)
        (to / "commands").write_text("".join(" ".join(t.argv) + "\n" for t in self.tracers) + f"{self}\n")
        return to


def leftovers(round_):
    """Sockets of tracers that are no more, after the moment that the kernel takes."""
    ours = {tracer.process.pid for tracer in round_.tracers}
    end = time.monotonic() + 10
    while time.monotonic() < end:
        found = [line for line in pathlib.Path("/proc/net/unix").read_text().splitlines()
                 if (name := re.search(r"@dtap-(\d+)-\w+", line)) and int(name[1]) in ours]
        if not found:
            break
        time.sleep(0.05)
    return found


def soak(options):
    """Rounds until the time is up; the number of those that failed."""
    # A shell has what it starts in the background ignore it, and the tracers would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end = time.monotonic() + options.seconds
    failed, number = 0, options.first
    while time.monotonic() < end and number < options.first + options.rounds:
        round_ = Round(options.seed, number, options)
        try:
            if options.verbose:
                print(round_, flush=True)
            round_.run()
            left = leftovers(round_)
            if left:
                raise Failed(", ".join(left))
        except (Failed, AssertionError, subprocess.TimeoutExpired) as error:
            failed += 1
            round_.failed = True
            kept = round_.keep(options.keep) if options.keep else "nowhere, see --keep"
            print(f"{round_}\n  seed {options.seed}, kept in {kept}\n  {error}", flush=True)
        finally:
            round_.clean_up()
            round_.interp.close()
        number += 1
    print(f"{number - options.first} rounds with seed {options.seed}, {failed} failed", flush=True)
    return failed


def arguments(words=None):
    parser = argparse.ArgumentParser(description="Random scripts, programs and ends; see the comment of this file.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=sys.maxsize)
    parser.add_argument("--first", type=int, default=0, help="the first round's number")
    parser.add_argument("--seed", default=str(time.time_ns() % 1000000))
    parser.add_argument("--python", default=",".join(harness.VERSIONS), type=lambda text: text.split(","))
    parser.add_argument("--place", default="auto,target,target,kernel", type=lambda text: text.split(","))
    parser.add_argument("--keep", help="a folder for what belongs to failed rounds")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args(words)
    options.python = options.python if isinstance(options.python, list) else options.python.split(",")
    options.place = options.place if isinstance(options.place, list) else options.place.split(",")
    return options


if __name__ == "__main__":
    sys.exit(1 if soak(arguments()) else 0)
