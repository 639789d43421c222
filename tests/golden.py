"""Golden tests: a D or SystemTap script whose comments say how to run it and what must come out.

The forms are shown in tests/README.md.  The folder says how far a script must get: in parse/ and check/
the command must give the diagnostics that the comments name, in run/ the output.  d/guide/CHAPTER/ is as run/.
"""
import difflib
import os
import re
import shlex
import zlib

import pytest

import harness

DIRECTIVE = re.compile(r"^\s*(?:/?\*+|//)?\s*@@([\w-]+)(?::\s*(.*?))?\s*(?:\*/)?\s*$")
KNOWN = {"program", "args", "python", "options", "sort", "blanks", "exit", "stderr", "output", "script-args", "inside", "pids"}
# What only the kernel place has.
KERNEL_ONLY = re.compile(r"\b(profile-|pid\$target|syscall::|proc::|sched::|rawtp:|\bstack\(|curthread|fds\[|rand\()")
STAP_KERNEL_ONLY = re.compile(r"\.function\(|\bprobe (syscall|kernel)\.")
# Where the kernel place uses the interpreter's own markers and has nothing to say.
SUPPLIES = re.compile(r"^# stap: dtap's agent supplies .*\n", re.M)
THEN = re.compile(r"/\* @@then: (.*?) \*/")
# A script that begins with BEGIN runs inside a Python as well: on 3.9, and on one of the others in turn.
BEGIN = re.compile(r"^BEGIN\b[ \t]*\n?[ \t]*(?:/(?![*/])(.*?)/(?![*/]))?(?=\s*\{)", re.M)
STAP_BEGIN = re.compile(r"\bprobe begin\s*\{")
MORE_BEGINS = re.compile(r"begin\(")
INSIDE = "def golden_begin():\n\tpass\ngolden_begin()\n"
# What of the firing itself is in the output.
OF_THE_PROBE = re.compile(r"\b(probe(prov|mod|func|name)|id|epid|pid|ppid|tid|execname|arg\d|args|caller|ucaller|uregs|pp|pn"
                          r"|target|ERROR|tick|profile|timer|ppfunc|probe_type|pexecname|cpu|uid|cwd|root)\b|\$target|curthread|curpsinfo|curlwpsinfo")
EXPECTED_ERROR = re.compile(r"/\* error: (\w+) \*/")


def collector_of(path):
    """The class that collects a file, by its folder; None when it is no golden test."""
    if path.suffix == ".d" and path.parent.parent.name == "guide":      # tests/d/guide/CHAPTER/
        return RunFile
    if path.suffix[1:] != path.parent.parent.name:
        return None
    kinds = {".d": {"run": RunFile, "parse": VerdictFile, "check": VerdictFile},
             ".stp": {"run": StapRunFile, "parse": StapVerdictFile, "check": StapVerdictFile}}
    return kinds.get(path.suffix, {}).get(path.parent.name)


class Directives:
    def __init__(self, path):
        self.path = path
        self.values = {}
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            found = DIRECTIVE.match(line)
            if not found:
                continue
            name, value = found.groups()
            if name not in KNOWN:
                raise pytest.Collector.CollectError(f"{path}:{number + 1}: no directive @@{name}")
            if name == "output":
                value = self._output_below(lines[number + 1:], number + 1)
            self.values[name] = value or ""

    def _output_below(self, lines, number):
        """The lines up to the one that closes the comment."""
        if "*/" not in lines:
            raise pytest.Collector.CollectError(f"{self.path}:{number}: @@output needs a line */ behind it")
        return "".join(f"{line}\n" for line in lines[:lines.index("*/")])

    def get(self, name, default=None):
        return self.values.get(name, default)

    def __contains__(self, name):
        return name in self.values

    @property
    def program(self):
        if "program" in self:
            return self.path.parent / self.values["program"]
        beside = self.path.with_suffix(".py")
        return beside if beside.exists() else None

    @property
    def output(self):
        if "output" in self:
            return self.values["output"]
        beside = self.path.with_suffix(".out")
        return beside.read_text() if beside.exists() else None


class RunFile(pytest.File):
    def collect(self):
        item_class = self.item_class()
        directives = Directives(self.path)
        versions = [None]
        if directives.program:
            versions = directives.get("python", "3.9").split()
        for version in versions:
            name = f"py{version}" if version else "run"
            item = item_class.from_parent(self, name=name, directives=directives, version=version, place="kernel")
            item.add_marker("needs_bpf")
            if directives.get("pids") == "machine":
                item.add_marker("machine_pids")
            yield item
            yield from self.in_turn(list(self.beside_the_kernel(item_class, directives, name, version)))

    def beside_the_kernel(self, item_class, directives, name, version):
        if not self.has_target_place(directives):
            return
        item = item_class.from_parent(self, name=f"{name}-target", directives=directives, version=version, place="target")
        item.add_marker("needs_root")       # for the interpreters' chroot only
        yield item
        if not version and self.can_be_inside(directives):
            yield from self.inside(item_class, directives)

    def in_turn(self, items):
        """Without --whole one of them, by the script's name."""
        if not items or self.config.getoption("--whole"):
            return items
        return [items[zlib.crc32(self.path.name.encode()) // len(harness.VERSIONS) % len(items)]]

    def can_be_inside(self, directives):
        text = self.path.read_text()
        return len(self.begin.findall(text)) == 1 and not MORE_BEGINS.search(text) and not OF_THE_PROBE.search(text) and "inside" not in directives and \
            not directives.get("exit") and "stderr" not in directives

    def inside(self, item_class, directives):
        """The same clauses on a marker of a Python, in the target place."""
        others = [version for version in harness.VERSIONS if version != "3.9"]
        for version in ("3.9", others[zlib.crc32(self.path.name.encode()) % len(others)]):
            item = item_class.from_parent(self, name=f"inside-py{version}", directives=directives, version=version,
                                          place="inside")
            item.add_marker("needs_root")
            yield item

    begin = BEGIN

    def has_target_place(self, directives):
        """The script must do the same in the traced process; one that is refused does not get that far."""
        if directives.get("exit") == "1" and directives.output is None:
            return False
        return not KERNEL_ONLY.search(self.path.read_text()) and "-x place" not in directives.get("options", "")

    def item_class(self):
        return RunItem


class StapRunFile(RunFile):
    begin = STAP_BEGIN

    def has_target_place(self, directives):
        return not STAP_KERNEL_ONLY.search(self.path.read_text()) and "--place" not in directives.get("options", "")

    def item_class(self):
        return StapRunItem


class GoldenItem(pytest.Item):
    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, 0, f"{self.path.name}[{self.name}]"


class VerdictFile(pytest.File):
    def collect(self):
        item = VerdictItem.from_parent(self, name="verdict")
        item.add_marker("needs_root")
        yield item


def then_of(path):
    """What the command says of a script without mistakes behind the stage that its folder names; None: nothing."""
    beside = path.with_suffix(".then")
    if beside.exists():
        return beside.read_text().strip()
    found = THEN.search(path.read_text(errors="replace"))
    return found and found[1]


def judge_valid(path, result):
    """A script without mistakes is accepted, or refused for the reason that it names."""
    then = then_of(path)
    if result.code != (1 if then else 0) or (then and not re.search(then, result.err)):
        raise AssertionError(f"exit code {result.code}, to be {'1 with ' + then if then else 0}\n{result!r}")


class VerdictItem(GoldenItem):
    """The unit tests judge these scripts stage by stage, with invented probes; here the whole command does.
    A script that names such probes, or has mistakes for a later stage, says by @@then what comes of it."""

    def runtest(self):
        expected = [(number, tag) for number, line in enumerate(self.path.read_text().splitlines(), 1)
                    for tag in EXPECTED_ERROR.findall(line)]
        result = harness.dtrace("-q", "-e", "-x", "errtags", "-s", self.path)
        if not expected:
            judge_valid(self.path, result)
            return
        if result.code != 1:
            raise AssertionError(f"exit code {result.code}, not 1\n{result!r}")
        messages = result.err.splitlines()
        if "[D_PDESC_ZERO]" in result.err and "D_PDESC_ZERO" not in dict(expected).values():
            return
        for number, tag in expected:
            if not any(f"[{tag}]" in message and f"line {number}:" in message for message in messages):
                raise AssertionError(f"no [{tag}] on line {number}\n{result!r}")


class StapVerdictFile(pytest.File):
    def collect(self):
        item = StapVerdictItem.from_parent(self, name="verdict")
        item.add_marker("needs_root")
        yield item


class StapVerdictItem(GoldenItem):
    """As VerdictItem; the folder says the pass.  Warnings are left out."""

    def runtest(self):
        expected = [(number, tag) for number, line in enumerate(self.path.read_text().splitlines(), 1)
                    for tag in EXPECTED_ERROR.findall(line)]
        last = {"parse": "-p1", "check": "-p2"}[self.path.parent.name]
        result = harness.stap("-w", "--errtags", last, self.path)
        if not expected:
            judge_valid(self.path, result)
            return
        if result.code != 1:
            raise AssertionError(f"exit code {result.code}, not 1\n{result!r}")
        if "[S_POINT_NONE]" in result.err and "S_POINT_NONE" not in dict(expected).values():
            return      # a probe point that this machine lacks
        messages = re.split(r"^(?=\[S_)", result.err, flags=re.M)
        for number, tag in expected:
            if not any(message.startswith(f"[{tag}]") and (f":{number}:" in message or " at " not in message)
                       for message in messages):
                raise AssertionError(f"no [{tag}] on line {number}\n{result!r}")


class RunItem(GoldenItem):
    def __init__(self, *, directives, version, place, **kwargs):
        super().__init__(**kwargs)
        self.directives, self.version, self.place = directives, version, place

    def runtest(self):
        interp = None
        if self.version:
            found = harness.interpreters().get(self.version, "tools/pythons does not know it")
            if isinstance(found, str):
                pytest.skip(f"no Python {self.version}: {found}")
            interp = harness.Interp(self.version, found)
        try:
            result = self.run(interp)
        finally:
            if interp:
                interp.close()
        self.judge(result)

    def run(self, interp):
        d = self.directives
        if self.place == "inside":
            return self.run_inside(interp)
        argv = [*shlex.split(d.get("options", "-q")), "-x", f"place={self.place}", "-s", str(d.path)]
        if interp:
            argv += ["-c", interp.command(d.program, *d.get("args", "").split())]
        return harness.dtrace(*argv, *shlex.split(d.get("script-args", "")))

    def moved(self, to_path, pattern, replacement):
        """A copy of the script with its first probe replaced, where files beside it are found by their names."""
        to_path.write_text(pattern.sub(replacement, self.directives.path.read_text()))
        return str(to_path)

    def run_inside(self, interp):
        d = self.directives

        def on_marker(found):
            more = f" && ({found[1]})" if found[1] else ""
            return f'python$target:::function-entry /copyinstr(arg1) == "golden_begin"{more}/'

        script = self.moved(interp.dir / d.path.name, BEGIN, on_marker)
        return harness.dtrace(*shlex.split(d.get("options", "-q")), "-x", "place=target", "-s", script,
                              "-c", interp.command(INSIDE), *shlex.split(d.get("script-args", "")))

    def judge(self, result):
        d = self.directives
        code = int(d.get("exit", "0"))
        if result.code != code:
            raise AssertionError(f"exit code {result.code}, not {code}\n{result!r}")
        if "stderr" in d:
            if not re.search(d.get("stderr"), result.err):
                raise AssertionError(f"stderr does not match {d.get('stderr')!r}\n{result!r}")
        elif result.err and not code:
            raise AssertionError(f"something on stderr\n{result!r}")
        if d.output is None:
            return
        want, got = d.output.splitlines(), result.out.splitlines()
        if "sort" in d:
            try:
                got = harness.in_time_order(result.out)
            except (ValueError, IndexError):
                raise AssertionError(f"a line without time stamp\n{result!r}") from None
        want, got = strip_empty(want), strip_empty(got)
        if "blanks" in d:
            want, got = ([" ".join(line.split()) for line in lines if line.strip()] for lines in (want, got))
        if got != want:
            raise AssertionError(difference(want, got) + f"\n{result!r}")


class StapRunItem(RunItem):
    """@@options are stap's; @@script-args stand behind the script."""

    def run_inside(self, interp):
        d = self.directives
        script = self.moved(interp.dir / d.path.name, STAP_BEGIN, 'probe process.mark("function__entry") '
                            '{ if (user_string($arg2) != "golden_begin") next;')
        result = harness.stap(*shlex.split(d.get("options", "")), "--place=target", script, "-c", interp.command(INSIDE),
                              *shlex.split(d.get("script-args", "")))
        result.err = SUPPLIES.sub("", result.err)
        return result

    def run(self, interp):
        d = self.directives
        if self.place == "inside":
            return self.run_inside(interp)
        argv = [*shlex.split(d.get("options", "")), f"--place={self.place}", str(d.path)]
        env = dict(os.environ)
        if interp:
            argv += ["-c", interp.command(d.program, *d.get("args", "").split())]
            env["DTAP_PYTHON"] = interp.executable
        result = harness.stap(*argv, *shlex.split(d.get("script-args", "")), env=env)
        if self.place == "target" and "stderr" not in d:
            result.err = SUPPLIES.sub("", result.err)
        return result


def strip_empty(lines):
    """Without empty lines at both ends; what ends an output is dtrace's business and not the test's."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    return lines


def difference(want, got):
    return "\n".join(difflib.unified_diff(want, got, "expected", "got", lineterm=""))
