#!/usr/bin/python3
"""What is traced while a call fails, and what must hold then: faults_test.py's parts, and the long run by hand.

    DTAP_BUILD=build nice tests/faults/sweep.py [--way NAME] [--kind NAME] [--seed S] [--share N] [-v]

A way is a command over a target, with the output that it has.  It is run once to count its calls of each kind; then once
for each call (or each N-th, from a random one of the first N on: --share), which fails.  Each time

- the command ends, with 0 and its whole output, or with 1 and a message; it dies of nothing;
- the target goes on: its results are right, no semaphore is up, it has no hook, memory or descriptor of the session;
- the next tracer finds it as the first did.

The agent's calls are swept in the same way, in the target.
"""
import argparse
import errno
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

os.environ.pop("PYTHONUNBUFFERED", None)     # lines would come in pieces, with others' between them
import harness  # noqa: E402
import inject  # noqa: E402
import sanitized  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_S = 20                # what hangs ends here
AGENTS = 4                  # descriptors that an agent may keep
SHORTAGES = (errno.ENOMEM, errno.EMFILE, errno.ENOSPC, errno.ENOBUFS, errno.EAGAIN)     # these may last
OURS = re.compile("dtap-(image|data|code)")

EVENTS = 5
END_S = 4 if sanitized.AGENT.exists() else 2    # a fault may have left the script without events
D_EVENT = 'python$target:::function-entry /copyinstr(arg1) == "probe"/'
D_SCRIPT = (D_EVENT + ' { @[copyinstr(arg1)] = count(); printf("call %d\\n", ++n); }' + D_EVENT + f" && n == {EVENTS}/ {{ exit(0); }}"
            ' END { printf("end\\n"); }' + f" tick-{END_S}s {{ exit(0); }}").replace('"/ && n', '" && n')
D_OUT = [f"call {k + 1}" for k in range(EVENTS)] + ["end", f"probe {EVENTS}"]
STAP_SCRIPT = ('global n, seen probe python.function.entry { if (pid() == target() && funcname == "probe" && n < %d) '
               '{ seen[funcname]++; printf("call %%d\\n", ++n); if (n == %d) exit() } } '
               'probe timer.s(10) { exit() } probe end { printf("end\\n"); foreach (f in seen) printf("%%s %%d\\n", f, seen[f]) }' % (EVENTS, EVENTS))


class Failed(Exception):
    pass


def lines_of(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


class Target:
    """target.py in an interpreter, with whatever environment; it is asked how it is after each run."""

    def __init__(self, interp, environment=None, agent=harness.AGENT):
        self.interp, self.agent = interp, agent
        self.process = subprocess.Popen(interp.argv_of(HERE / "target.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        self.most = None        # descriptors that it has when nobody traces it
        self.ask()

    @property
    def pid(self):
        return self.process.pid

    def ask(self):
        try:
            self.process.stdin.write("how are you\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"the target ended with {self.process.wait()}") from None
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"the target ended with {self.process.wait()}")
        return json.loads(line)

    def left(self):
        """What a session that is over has left in the target."""
        maps = pathlib.Path(f"/proc/{self.pid}/maps").read_text()
        left = [line for line in maps.splitlines() if OURS.search(line)]
        try:
            left += [name for name, value in (harness.agent_semaphores(self.pid, self.agent) or {}).items() if value]
        except OSError:
            left.append("an agent that was unmapped meanwhile")
        left += [name for name in self.interp.markers if harness.semaphore(self.pid, self.interp, name)]
        files = os.listdir(f"/proc/{self.pid}/fd")
        if self.most is not None and len(files) > self.most:
            left += [f"{len(files)} descriptors, not {self.most}"]
        return left

    def check(self):
        """It works, and is as it was."""
        end = time.monotonic() + LIMIT_S
        while True:
            said = self.ask()
            left = self.left() + said["hooks"]
            if not left or time.monotonic() > end:
                break
            time.sleep(0.002)
        if left:
            raise Failed(f"left in the target: {left}")
        if not said["right"]:
            raise Failed("the target's result is wrong")

    def settle(self):
        """What it has by now it may keep, and what an agent needs that comes by a fault alone."""
        self.most = len(os.listdir(f"/proc/{self.pid}/fd")) + AGENTS

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            code = self.process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process.stdout.close()
        if code:
            raise Failed(f"the target ended with {code}")


class Way:
    """A command over a target.  @argv makes it, of the words that name the target; @out: its lines, None: they are not known."""

    def __init__(self, name, argv, out, python=None, attach=False, fresh=False, sort=False, later=None):
        self.name, self.argv, self.out, self.python = name, argv, out, python
        self.attach, self.fresh, self.sort, self.later = attach, fresh, sort, later


def dtrace(*options, script=D_SCRIPT):
    return lambda target: [harness.DTRACE, "-q", *options, "-n", script, *target]


def stap(*options):
    return lambda target: [harness.STAP, *options, "-e", STAP_SCRIPT, *["-x" if word == "-p" else word for word in target]]


def dtap(*words):
    return lambda target: [harness.BUILD / "dtap", *words, *target]


ALONE = 'BEGIN { a["x", 1] = 3; @q = quantize(a["x", 1]); } tick-1ms /++n == 3/ { printf("%d\\n", n); exit(0); } END { printf("end\\n"); }'
CALLS = 'syscall::write:entry /pid == $target/ { @[probefunc] = count(); } END { printa("%s\\n", @); }'
C_CALLS = 'pid$target:a.out:f:entry { @[ustack(1)] = count(); }'
# The first process of a pid namespace: with it all others end.
FIRST = '"$@"; code=$?; set /proc/[0-9]*; while [ $# -gt 1 ]; do sleep 0.02; set /proc/[0-9]*; done; exit $code'
SEEN = 'python*:::function-entry /copyinstr(arg1) == "probe" && !n++/ { printf("seen\\n"); }'
PROFILE = 'profile-997 { @ = count(); } tick-10ms { printf("tick\\n"); exit(0); }'

WAYS = [
    Way("c-target", dtrace("-x", "place=target"), D_OUT, "3.13"),
    Way("c-kernel", dtrace("-x", "place=kernel"), D_OUT, "3.9"),
    Way("c-kernel-agent", dtrace("-x", "place=kernel"), D_OUT, "3.11"),
    Way("p-target", dtrace("-x", "place=target"), D_OUT, "3.13", attach=True),
    Way("p-kernel", dtrace("-x", "place=kernel"), D_OUT, "3.9", attach=True),
    Way("p-kernel-agent", dtrace("-x", "place=kernel"), D_OUT, "3.14", attach=True),
    Way("p-first", dtrace("-x", "place=target"), D_OUT, "3.11", attach=True, fresh=True),
    Way("stap-c-target", stap("--place=target"), D_OUT, "3.13"),
    Way("stap-p-target", stap("--place=target"), D_OUT, "3.14", attach=True),
    Way("stap-p-kernel", stap("--place=kernel"), D_OUT, "3.9", attach=True),
    # A Python that begins while it is traced; in a pid namespace, since others' would be, too.
    Way("later", dtrace("-x", "place=target", script=D_SCRIPT.replace("$target", "*")), D_OUT, "3.11", later='sh -c "{}; true"'),
    # One whose environment does not bring the agent: it is attached to.
    Way("attached", dtrace("-x", "place=target", script=SEEN), ["seen"], "3.11",
        later='sh -c "env -i {} slowly; true"'),
    Way("calls", dtap("calls", "-j"), None, "3.11"),
    Way("dump", dtap("dump"), None, "3.13", attach=True),
    Way("alone", lambda target: [harness.DTRACE, "-q", "-n", ALONE], ["3", "end"] + ["value ------------- Distribution ------------- count",
        "1 | 0", "2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1", "4 | 0"]),
    Way("alone-target", lambda target: [harness.DTRACE, "-q", "-x", "place=target", "-n", ALONE], ["3", "end"] + [
        "value ------------- Distribution ------------- count", "1 | 0", "2 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1", "4 | 0"]),
    Way("syscall", dtrace(script=CALLS), ["write"], "3.11"),
    Way("profile", lambda target: [harness.DTRACE, "-q", "-n", PROFILE], None),
]


class Sweep:
    """Of one way."""

    def __init__(self, way, folder, rnd, verbose=False):
        self.way, self.rnd, self.verbose = way, rnd, verbose
        self.order = inject.Order(folder / "order")
        self.interp = harness.Interp(way.python, harness.interpreters()[way.python]) if way.python else None
        self.target = None
        self.wrong, self.runs, self.ends = [], 0, {0: 0, 1: 0}
        self.folder, self.seen, self.said = folder, set(), None

    source = ""             # whose calls fail

    def start(self):
        if self.way.attach and not self.target:
            self.target = Target(self.interp)

    def environment(self):
        return self.order.environment()

    def stop(self):
        target, self.target = self.target, None
        if target:
            target.close()

    def close(self):
        try:
            self.stop()
        finally:
            if self.interp:
                self.interp.close()

    def words(self):
        if self.way.attach:
            return ["-p", self.target.pid]
        if not self.way.python:
            return []
        command = self.interp.command(HERE / "once.py")
        return ["-c", self.way.later.format(command) if self.way.later else command]

    def argv(self):
        return self.way.argv(self.words())

    def run(self):
        environment = self.environment()
        if not self.way.later:
            return harness.run(self.argv(), timeout=LIMIT_S, env=environment)
        words = [f"{name}={value}" for name, value in environment.items() if os.environ.get(name) != value]
        return harness.run(["unshare", "--pid", "--mount-proc", "--fork", "sh", "-c", FIRST, "sh", "env", *words, *self.argv()],
                           timeout=LIMIT_S)

    def judge(self, result):
        """The command's end, and its target's."""
        lines = lines_of(result.out)
        if not self.way.attach and "begun" in lines and "result 820" not in lines:
            raise Failed(f"the command has not done its work\n{result!r}")
        if result.code == 1:
            if not [line for line in lines_of(result.err) if not line.startswith("#")]:
                raise Failed(f"it says nothing\n{result!r}")
        elif result.code:
            raise Failed(f"status {result.code}\n{result!r}")
        elif self.way.out is not None:
            own = [line for line in lines if line not in ("begun", "result 820")]
            if own != self.way.out and not (self.says_more(result) and set(own) <= set(self.way.out)):
                raise Failed(f"its output is another\n{result!r}")
        elif not lines:
            raise Failed(f"no output\n{result!r}")
        self.ends[result.code] += 1

    def says_more(self, result):
        """Does it say what it never says when nothing fails?"""
        said = {re.sub(r"\d+", "N", line) for line in lines_of(result.err)}
        return said - self.said

    def once(self):
        self.start()
        result = self.run()
        if self.said is None:
            self.said = {re.sub(r"\d+", "N", line) for line in lines_of(result.err)}
        self.judge(result)
        if self.target:
            self.target.check()
            if self.way.fresh:
                self.stop()

    def clean(self):
        """Nothing fails."""
        self.order.set()
        before = self.ends[1]
        self.once()
        if self.ends[1] != before:
            raise Failed("without any fault it failed")

    def count(self, kinds):
        """How many calls of each of the kinds there are."""
        self.clean()
        if self.target:
            self.target.settle()
        counts = {}
        for kind in kinds:
            if kind != "none":
                self.order.set(kind, source=self.source)
                self.once()
                counts[kind] = self.order.told()[0]
        return counts

    def fault(self, kind, at, how, later=False):
        self.order.set(kind, at, how, later, self.source)
        begin = time.monotonic()
        try:
            self.once()
        except (Failed, AssertionError) as error:
            told = self.order.told()
            name = how if how == "short" else errno.errorcode[how]
            where, what = self.order.where(), str(error)
            if (where, what[:20]) not in self.seen:
                self.wrong.append(f"{self.way.name}: {kind} {at}{'+' if later else ''} {name} ({told[1]} failed), {where}: {what}")
                if self.verbose:
                    print("WRONG", self.wrong[-1], flush=True)
            self.seen.add((where, what[:20]))
            self.start_anew()
        self.runs += 1
        if self.verbose and time.monotonic() - begin > 3:
            print(f"slow: {kind} {at} {how} {later}: {time.monotonic() - begin:.1f} s, {self.order.where()}", flush=True)

    def start_anew(self):
        """A target that was harmed is of no use to the others."""
        try:
            self.stop()
        except Failed:
            pass
        self.order.set()
        self.start()
        if self.target:
            try:
                self.once()
                if self.target:
                    self.target.settle()
            except (Failed, AssertionError) as error:
                self.wrong.append(f"{self.way.name}: then, without a fault: {error}")

    def sweep(self, kinds, most=None, share=1):
        """The calls of @kinds fail, one in @share of them; no more than @most."""
        todo = []
        for kind, calls in self.count(kinds).items():
            if self.verbose:
                print(f"{self.way.name}: {kind}: {calls} calls", flush=True)
            for how in inject.KINDS[kind]:
                first = self.rnd.randint(1, share)
                todo += [(kind, at, how, False) for at in range(first, calls + 1, share)]
                first = self.rnd.randint(1, share * 10)
                if how in SHORTAGES:
                    todo += [(kind, at, how, True) for at in range(first, calls + 1, share * 10)]
        if most and len(todo) > most:
            todo = self.rnd.sample(todo, most)
        for fault in todo:
            self.fault(*fault)
        self.clean()


class AgentSweep(Sweep):
    """The calls of the agent fail, in the target.  In a build with sanitizers it is the agent that has some."""

    def __init__(self, way, folder, rnd, verbose=False):
        super().__init__(way, folder, rnd, verbose)
        self.build = self.sanitizers = None
        # In another root the agent is loaded through a descriptor, and the loader knows it by that.
        self.source = "thread-self/fd" if self.interp.root else "dtap-agent"
        self.interp.dir.chmod(0o777)
        library = self.interp.dir / "inject.so"
        shutil.copy(inject.built(), library)
        self.order = inject.Order(self.interp.dir / "order", library)
        if not sanitized.refusal():
            self.sanitizers = sanitized.library(self.interp)
        if self.sanitizers:
            self.build = sanitized.build(folder)

    def argv(self):
        command, *words = super().argv()
        return [self.build / command.name if self.build else command, *words]

    def start(self):
        if self.target:
            return
        env = self.order.environment(self.interp.inside)
        if self.sanitizers:
            reports = f"log_path={self.interp.inside(self.interp.dir)}/report"
            env["LD_PRELOAD"] += ":" + self.interp.inside(self.sanitizers)
            env.update(PYTHONMALLOC="malloc", ASAN_OPTIONS=f"verify_asan_link_order=0:detect_leaks=1:exitcode=0:{reports}",
                       UBSAN_OPTIONS=f"print_stacktrace=1:{reports}")
        self.target = Target(self.interp, env, sanitized.AGENT if self.sanitizers else harness.AGENT)

    def stop(self):
        try:
            super().stop()
        finally:
            wrong = self.reported()
        if wrong:
            raise Failed("\n".join(wrong))

    def reported(self):
        """What the sanitizers say of the agent: of leaks, those of memory that it has got itself; the interpreter has some, too."""
        wrong = []
        for path in self.interp.dir.glob("report.*"):
            text = path.read_text(errors="replace")
            path.unlink()
            leaks = re.findall(r"^(?:Direct|Indirect) leak.*?(?=^$)", text, re.M | re.S)
            wrong += [leak for leak in leaks if re.search(r"^ *#1 .*" + self.source, leak, re.M)]
            if not leaks:
                wrong.append(text)
        return wrong

    def environment(self):
        return None


# The agent knows an interpreter once; what it does then fails in each of these.
AGENT_WAYS = [way for way in WAYS if way.name in ("p-target", "p-kernel-agent", "p-first", "stap-p-target")]


def arguments():
    parser = argparse.ArgumentParser(description="Make each call fail; see the comment of this file.")
    parser.add_argument("--way", action="append", choices=[way.name for way in WAYS])
    parser.add_argument("--kind", action="append", choices=list(inject.KINDS))
    parser.add_argument("--seed", default=str(time.time_ns() % 1000000))
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--agent", action="store_true", help="the agent's calls, not the tracer's")
    parser.add_argument("-v", "--verbose", action="store_true")
    return parser.parse_args()


def main():
    options, wrong, runs = arguments(), [], 0
    kind_of = AgentSweep if options.agent else Sweep
    for way in AGENT_WAYS if options.agent else WAYS:
        if options.way and way.name not in options.way:
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="dtap-faults-"))
        sweep = kind_of(way, folder, random.Random(f"{options.seed} {way.name}"), options.verbose)
        begin = time.monotonic()
        try:
            sweep.sweep(options.kind or inject.KINDS, share=options.share)
        finally:
            sweep.close()
            shutil.rmtree(folder)
        wrong += sweep.wrong
        runs += sweep.runs
        print(f"{way.name}: {sweep.runs} faults in {time.monotonic() - begin:.0f} s, {sweep.ends[1]} commands failed, "
              f"{len(sweep.wrong)} wrong", flush=True)
        for text in sweep.wrong:
            print(text, flush=True)
    print(f"{runs} faults with seed {options.seed}, {len(wrong)} wrong", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
