"""
Every system call of the machine, by both languages, as strace tells it of the same program: which calls, what they gave,
and in SystemTap's words with what.  calls.c makes them.
"""
import itertools
import platform
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = [pytest.mark.needs_bpf, pytest.mark.skipif(platform.machine() != "x86_64", reason="calls.c is for x86-64")]

# A call that the kernel has for itself alone: whoever makes it is ended by a signal.
NOT_MADE = {"uretprobe"}
CALLS = harness.TOP / "tests/cli/calls.c"


def numbers():
    """Name -> number, by the table of the kernel that dtap's sources have."""
    text = (harness.TOP / "src/arch/x86_64/syscalls.def").read_text()
    return {name: int(n) for n, name in re.findall(r"^SYSCALL\((\d+), (\w+)\)", text, re.M)}


def made():
    """The names of the calls that calls.c makes."""
    return set(re.findall(r"\bCALL\((\w+)[,)]", CALLS.read_text())) - {"name", "NAME"}


def aliases():
    """The tapset's alias -> the kernel's names of what it stands for, of calls and returns alike."""
    listed = dict(re.findall(r"^(\S+) = (.*)$", harness.stap("--dump-probe-aliases").out, re.M))
    inner = {name: re.findall(r'kernel\.syscall\("(\w+)"\)', text) for name, text in listed.items()}
    for name, text in listed.items():
        for other in re.findall(r"__syscall[\w.]+", text):
            inner[name] = inner[name] + inner.get(other, [other.removeprefix("__syscall.").removesuffix(".return")])
    return {name: calls for name, calls in inner.items() if name.startswith("syscall.")}


# --- what strace tells ------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not shutil.which("strace") or not shutil.which("gcc"):
        pytest.skip("needs strace and gcc")
    to = tmp_path_factory.mktemp("calls") / "calls"
    subprocess.run(["gcc", f"-I{harness.TOP / 'src'}", "-o", to, CALLS], check=True)
    return to


class Call:
    """One call: its name, its arguments in words, and "", the name of the error that it gave, or None: it did not return."""

    def __init__(self, name, words, error):
        self.name, self.words, self.error = name, words, error

    def __repr__(self):
        return f"{self.name}({self.words}) {self.error}"


def from_first(calls):
    """What each process calls, from the program's own first call on, in the order of their first calls; without the ends of
    signal handlers, of which there may be more than one."""
    first = next(k for k, (_, call) in enumerate(calls) if call.name == "umask")
    by_process = {}
    for process, call in calls[first:]:
        if call.name != "rt_sigreturn":
            by_process.setdefault(process, []).append(call)
    return list(by_process.values())


@pytest.fixture(scope="module")
def strace(program):
    """from_first() as strace has it."""
    names = {n: name for name, n in numbers().items()}
    log = program.parent / "strace"
    subprocess.run(["strace", "-f", "-o", log, program], check=True, stderr=subprocess.DEVNULL)
    lines, waiting = [], {}
    for process, text in re.findall(r"^(\d+) +(.*?) *$", log.read_text(), re.M):
        if text.endswith("<unfinished ...>"):
            waiting[process] = len(lines)
            lines.append((process, text.removesuffix("<unfinished ...>")))
        elif text.startswith("<..."):
            at = waiting.pop(process)
            lines[at] = (process, lines[at][1] + text.partition(">")[2])
        elif text[0] not in "-+":
            lines.append((process, text))
    calls = []
    for process, text in lines:
        name, words, gave = re.fullmatch(r"(\w+)\((.*)\) += (.*)", text).groups()
        if name.startswith("syscall_"):                 # newer than this strace
            name, words = names[int(name.removeprefix("syscall_"), 0)], None
        error = re.match(r"(?:-1|\?) (E\w+)", gave)
        calls.append((process, Call(name, words, error[1] if error else None if gave == "?" else "")))
    return from_first(calls)


# --- what both languages tell -----------------------------------------------------------------------------------------

def of_lines(out):
    """from_first() of lines "process + name words" for calls and "process = name error" for returns."""
    calls, last = [], {}
    for process, kind, name, rest in re.findall(r"^(\d+) ([+=]) (\w+) ?(.*)$", out, re.M):
        if kind == "+":
            last[process] = Call(name, rest, None)
            calls.append((process, last[process]))
        elif process in last:
            error = re.search(r"\bE[A-Z]\w*", rest.replace("-514", "ERESTARTNOHAND"))      # the kernel's own
            last[process].error = error[0] if error else ""
    return from_first(calls)


def compare(strace, told, alike=lambda one, other: True):
    wrong = []
    for ours, theirs in itertools.zip_longest(told, strace, fillvalue=[]):
        for one, other in itertools.zip_longest(ours, theirs):
            if not one or not other or (one.name, one.error) != (other.name, other.error) or not alike(one, other):
                wrong.append(f"{one!r}, strace: {other!r}")
    assert strace and not wrong, "\n".join(wrong)


def test_d(program, strace, dtrace):
    listed = set(re.findall(r"(\S+) entry$", dtrace("-l", "-n", "syscall:::entry").out, re.M))
    assert listed <= made() | NOT_MADE and len(listed) > 350, sorted(listed - made())
    errors = "".join(f'this->error = errno == {n} ? "{name}" : this->error;' for n, name in ERRORS.items())
    result = dtrace("-q", "-x", "strsize=32", "-n", f"""
        syscall:::entry /pid == $target || ppid == $target/ {{ printf("%d + %s\\n", tid, probefunc); }}
        syscall:::return /pid == $target || ppid == $target/ {{ this->error = ""; {errors} printf("%d = %s %s\\n", tid, probefunc, this->error); }}
        """, "-c", str(program))
    assert result.code == 0 and not result.err, result
    told = of_lines(result.out)
    compare(strace, told)
    assert "rt_sigreturn" in result.out and {call.name for calls in told for call in calls} | {"rt_sigreturn"} >= listed - NOT_MADE


# The errors that the calls give.
ERRORS = {1: "EPERM", 2: "ENOENT", 3: "ESRCH", 4: "EINTR", 7: "E2BIG", 8: "ENOEXEC", 9: "EBADF", 10: "ECHILD", 11: "EAGAIN",
          12: "ENOMEM", 14: "EFAULT", 16: "EBUSY", 19: "ENODEV", 22: "EINVAL", 34: "ERANGE", 38: "ENOSYS", 95: "EOPNOTSUPP",
          126: "ENOKEY", 514: "ERESTARTNOHAND"}


# Words of the same thing: SystemTap's, strace's.
SAME = {"PF_LOCAL": "AF_UNIX", "SIG_0": "0"}
# What strace has words for and SystemTap has not, or in another order, by position.
OTHERWISE = {"clone": {0, 1}, "fanotify_init": {0}, "ioctl": {1}, "ioprio_set": {2}, "kexec_load": {3}, "memfd_secret": {0},
             "quotactl": {0, 1}, "remap_file_pages": {4}, "statx": {2, 3}, "tee": {3}, "unshare": {0}, "userfaultfd": {0},
             "ustat": {0}}


def parts(words):
    """Arguments; commas in brackets and strings separate none."""
    found, depth, is_quoted = [""], 0, False
    for char in re.sub(r" ?/\*.*?\*/", "", words or ""):
        is_quoted ^= char == '"' and not found[-1].endswith("\\")
        depth += not is_quoted and (char in "[{(") - (char in "]})")
        if char == "," and not depth and not is_quoted:
            found.append("")
        else:
            found[-1] += char
    return [SAME.get(part.strip(), part.strip()) for part in found]


def number(word):
    """As 32 bits, where it is a number."""
    if word == "NULL":
        return 0
    try:
        return int(word, 8 if re.fullmatch(r"0\d+", word) else 0) & 0xffffffff
    except ValueError:
        return word


def same_words(one, other):
    """Are the arguments the same, where both show them?  Addresses and what is there are not compared."""
    def is_shown(word):
        return word and word[0] not in "[{" and not re.fullmatch(r"0x[0-9a-f]{9,}", word)

    return all(number(a) == number(b) for k, (a, b) in enumerate(zip(parts(one.words), parts(other.words)))
               if k not in OTHERWISE.get(one.name, ()) and is_shown(a) and is_shown(b))


def test_stap(program, strace):
    own = aliases()
    assert len(own) > 600 and {name for names in own.values() for name in names} <= made()
    points = ["function ours() { return pid() == target() || ppid() == target() }"]
    for alias, names in own.items():
        name = "name" if len(names) > 1 else f'"{names[0]}"'
        kind, what = ("=", "retstr") if alias.endswith(".return") else ("+", "argstr")
        points.append(f'probe {alias} {{ if (ours()) printf("%d {kind} %s %s\\n", tid(), {name}, {what}) }}')
    result = harness.stap("--suppress-time-limits", "-g", "-e", "\n".join(points), "-c", str(program))
    assert result.code == 0, result
    known = {name for names in own.values() for name in names}
    compare([[call for call in calls if call.name in known] for calls in strace], of_lines(result.out), same_words)
