"""Files that change under the tracer's hands, and things that are no files.

The programs traced have a marker with a semaphore.  Each looks at its own semaphore every millisecond and, when its input
ends, prints the highest value that it ever saw: it is the witness of what was armed where.
"""
import ctypes
import os
import pathlib
import re
import shutil
import socket
import stat
import struct
import subprocess

import pytest

import harness

# A script on every program with the marker would meet those of another test, and raise their semaphores.
pytestmark = pytest.mark.alone

HERE = pathlib.Path(__file__).resolve().parent

MARKED = """
#include <poll.h>
#include <stdio.h>
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
unsigned short hostile_tick_semaphore __attribute__((section(".probes")));
__attribute__((noinline)) void tick(int n)
{
	DTRACE_PROBE1(hostile, tick, n);
	__asm__ volatile("" : : : "memory");
}
int highest(void)
{
	static int max;
	int now = *(volatile unsigned short *)&hostile_tick_semaphore;
	return max = now > max ? now : max;
}
"""

MAIN = """
#include <poll.h>
#include <stdio.h>
void tick(int n);
int highest(void);
int main(void)
{
	struct pollfd in = { 0, POLLIN, 0 };
	puts("ready");
	fflush(stdout);
	for (int n = 0; !poll(&in, 1, 1); n++) {
		tick(n);
		highest();
	}
	printf("%d\\n", highest());
	return 0;
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the program, as one file and as a main program with the library in it, and the preloaded object."""
    to = tmp_path_factory.mktemp("hostile")
    (to / "marked.c").write_text(MARKED)
    (to / "main.c").write_text(MAIN)
    cc = ["gcc", "-O1", "-w", "-g", "-I", harness.TOP / "include"]
    subprocess.run([*cc, "main.c", "marked.c", "-o", "victim"], cwd=to, check=True)
    subprocess.run([*cc, "-shared", "-fPIC", "marked.c", "-o", "libmarked.so"], cwd=to, check=True)
    subprocess.run([*cc, "main.c", "-L.", "-lmarked", "-Wl,-rpath,$ORIGIN", "-o", "linked"], cwd=to, check=True)
    subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", HERE / "at_arming.c", "-o", "at_arming.so"], cwd=to, check=True)
    return to


@pytest.fixture
def files(built, tmp_path):
    tmp_path.chmod(0o755)
    for name in ("victim", "linked", "libmarked.so"):
        shutil.copy(built / name, tmp_path)
    shutil.copy(built / "victim", tmp_path / "other")
    return tmp_path


@pytest.fixture
def running(start):
    """running(path) -> the process, which has come to its loop; its `highest` semaphore when asked (once)."""
    def run(path):
        child = start([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        child.highest = lambda: int(child.communicate()[0])
        return child
    return run


def trace(built, argv, command, when="AT_LOADING", timeout=120):
    """Run a tracer for which @command is carried out between reading and arming."""
    env = dict(os.environ, LD_PRELOAD=str(built / "at_arming.so"), **{when: f"{command}; touch {built}/acted"},
               ASAN_OPTIONS="verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", ""))
    acted = built / "acted"
    acted.unlink(missing_ok=True)
    result = harness.run(argv, env=env, timeout=timeout)
    assert acted.exists(), f"nothing was armed\n{result!r}"
    return result


# Between two events of a process, which end those with semaphores, it has looked at its semaphore.  One process tells: on another
# processor the other one may have an event beside exit().
SCRIPTS = {
    "usdt": lambda pid, path, *_: [
        harness.DTRACE, "-qn", "hostile$target:::tick /n++/ { printf(\"tick\"); exit(0); } tick-100s { exit(3); }", "-p", pid],
    "usdt wide": lambda pid, path, other=None: [
        harness.DTRACE, "-qn", "hostile*:::tick { n[pid]++; } tick-100s { exit(3); }"
        " hostile*:::tick /pid == $1 && n[$1] > 1 && n[$2] > 1/ { printf(\"tick\"); exit(0); }", pid, other or pid],
    "pid": lambda pid, path, *_: [
        harness.DTRACE, "-qn", f"pid$target:{os.path.basename(path)}:tick:entry {{ printf(\"tick\"); exit(0); }} tick-100s {{ exit(3); }}",
        "-p", pid],
    "stap mark": lambda pid, path, *_: [
        harness.STAP, "-e", f'global n; probe process("{path}").mark("tick") {{ if (pid() == $1 && n++) {{ printf("tick"); exit() }} }}'
        ' probe timer.s(100) { error("none") }', pid],
    "stap function": lambda pid, path, *_: [
        harness.STAP, "-e", f'probe process("{path}").function("tick") {{ if (pid() == $1) {{ printf("tick"); exit() }} }}'
        ' probe timer.s(100) { error("none") }', pid],
}


@pytest.mark.needs_bpf
@pytest.mark.parametrize("how", SCRIPTS)
@pytest.mark.parametrize("when", ("AT_LOADING", "AT_ARMING"))
def test_swapped_for_a_link(built, files, running, how, when):
    """What is armed is the file that was read, not what its path leads to by then."""
    victim, other = running(files / "victim"), running(files / "other")
    result = trace(built, SCRIPTS[how](victim.pid, str(files / "victim"), other.pid),
                   f"mv {files}/victim {files}/moved && ln -s other {files}/victim", when)
    assert (result.code, result.out) == (0, "tick"), result
    assert other.highest() == (how == "usdt wide")
    assert victim.highest() == ("mark" in how or "usdt" in how)


@pytest.mark.needs_bpf
@pytest.mark.parametrize("how", SCRIPTS)
def test_replaced(built, files, running, how):
    """As a package manager does it: a new file under the old name; the process still has the old one."""
    victim, other = running(files / "victim"), running(files / "other")
    result = trace(built, SCRIPTS[how](victim.pid, str(files / "victim"), other.pid),
                   f"cp {files}/other {files}/new && mv {files}/new {files}/victim")
    assert (result.code, result.out) == (0, "tick"), result
    assert (victim.highest(), other.highest()) == ("mark" in how or "usdt" in how, how == "usdt wide")


REWRITE = {
    "in place": "dd if={lib} of={lib} bs=1M conv=notrunc status=none",
    "in place, time kept": "cp -p {lib} {lib}.time; printf X | dd of={lib} bs=1 seek=8 conv=notrunc status=none;"
                           " touch -r {lib}.time {lib}",
    "longer": "printf X >> {lib}",
}


@pytest.mark.needs_bpf
@pytest.mark.parametrize("change", REWRITE)
@pytest.mark.parametrize("how", SCRIPTS)
def test_rewritten_in_place(built, files, running, how, change):
    """It is noticed before a semaphore is raised, and the message names the file and says what to do."""
    lib = files / "libmarked.so"
    process = running(files / "linked")
    result = trace(built, SCRIPTS[how](process.pid, str(lib)), REWRITE[change].format(lib=lib))
    assert result.code == 1 and "tick" not in result.out, result
    assert re.search(rf"{lib}.*rewritten.*start again", result.err), result
    assert process.highest() == 0


@pytest.mark.needs_bpf
@pytest.mark.parametrize("how", SCRIPTS)
def test_rewritten_at_the_last_moment(built, files, running, how):
    """After the look at it, and before the kernel has it: a second look ends the session."""
    lib = files / "libmarked.so"
    process = running(files / "linked")
    result = trace(built, SCRIPTS[how](process.pid, str(lib)), REWRITE["in place"].format(lib=lib), "AT_ARMING")
    assert result.code == 1 and "tick" not in result.out, result
    assert re.search(rf"{lib}.*rewritten.*start again", result.err), result


# --- no files ----------------------------------------------------------------------------------------

IN_OPEN = 0x20


class Opens:
    """The witness of who opens what lies at a path: inotify(7)."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.libc.inotify_add_watch(self.fd, str(path).encode(), IN_OPEN) >= 0

    def seen(self):
        try:
            return len(os.read(self.fd, 65536))
        except BlockingIOError:
            return 0

    def __del__(self):
        os.close(self.fd)


def put(kind, path):
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "device":
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))    # /dev/zero: it has no end
    elif kind == "folder":
        os.mkdir(path)
    else:
        socket.socket(socket.AF_UNIX).bind(str(path))


KINDS = ("FIFO", "device", "folder", "socket")

# The kernel's own links to mapped files want one of these capabilities: with neither, there are paths alone.
RIGHTS = {"with the kernel's links": [], "by path": ["setpriv", "--bounding-set", "-sys_admin,-checkpoint_restore"]}


@pytest.mark.needs_root
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rights", RIGHTS)
def test_listing_opens_no_such_thing(files, running, kind, rights):
    victim = running(files / "victim")
    (files / "victim").unlink()
    put(kind, files / "victim")
    opens = Opens(files / "victim")
    result = harness.run([*RIGHTS[rights], harness.DTRACE, "-l", "-n", f"hostile{victim.pid}:::"])
    assert not opens.seen(), result
    if rights == "by path":
        assert result.code == 1 and "victim" in result.err, result
    else:
        assert result.code == 0 and "tick" in result.out, result


@pytest.mark.needs_root
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", ('process("{}").mark("*")', 'process("{}").function("*")', 'process("{}").begin',
                                   'process.library("{}").function("*")'))
def test_named_by_path(tmp_path, kind, point):
    put(kind, tmp_path / "it")
    opens = Opens(tmp_path / "it")
    result = harness.stap("-l", point.format(tmp_path / "it"))
    assert not opens.seen(), result
    assert result.code == 1, result


@pytest.mark.needs_root
@pytest.mark.parametrize("kind", ("FIFO", "device"))
def test_interpreter_of_a_script(tmp_path, kind):
    """A script's first line names what is no file; so does what looks like the script."""
    put(kind, tmp_path / "it")
    (tmp_path / "script").write_text(f"#!{tmp_path}/it\n")
    (tmp_path / "script").chmod(0o755)
    opens = Opens(tmp_path / "it")
    for name in ("script", "it"):
        result = harness.stap("-l", f'process("{tmp_path}/{name}").mark("*")')
        assert result.code == 1 and not opens.seen(), result


# --- files of any size ----------------------------------------------------------------------------------

HUGE = 1 << 40


class Elf:
    """A 64-bit ELF file, to be damaged."""

    def __init__(self, path):
        self.path = path
        self.data = bytearray(path.read_bytes())
        self.phoff, self.shoff = struct.unpack_from("<QQ", self.data, 32)
        self.phnum, _, self.shnum, self.shstrndx = struct.unpack_from("<HHHH", self.data, 56)

    def section(self, name):
        def field(i, at):
            return struct.unpack_from("<Q", self.data, self.shoff + 64 * i + at)[0]

        names = field(self.shstrndx, 24)
        for i in range(self.shnum):
            at = names + struct.unpack_from("<I", self.data, self.shoff + 64 * i)[0]
            if self.data[at:self.data.index(0, at)].decode() == name:
                return self.shoff + 64 * i
        raise KeyError(name)

    def segment(self, kind):
        return next(self.phoff + 56 * i for i in range(self.phnum)
                    if struct.unpack_from("<I", self.data, self.phoff + 56 * i)[0] == kind)

    def set(self, at, value):
        struct.pack_into("<Q", self.data, at, value)

    def write(self, size):
        self.path.write_bytes(self.data)
        os.truncate(self.path, size)


def grow(name):
    def damage(elf):
        at = elf.section(name)
        elf.set(at + 24, len(elf.data))         # sh_offset, sh_size
        elf.set(at + 32, HUGE)
    return damage


def many_sections(elf):
    struct.pack_into("<H", elf.data, 60, 0)     # e_shnum: the number is the first section's size
    table = elf.data[elf.shoff:]
    elf.set(40, len(elf.data))                  # e_shoff
    elf.data += table
    elf.set(len(elf.data) - len(table) + 32, 1 << 30)


def many_segments(elf):
    struct.pack_into("<H", elf.data, 56, 0xffff)
    struct.pack_into("<I", elf.data, elf.shoff + 44, 1 << 30)       # the first section's sh_info
    elf.set(32, len(elf.data))


def grow_segment(kind):
    def damage(elf):
        at = elf.segment(kind)
        elf.set(at + 8, len(elf.data))
        elf.set(at + 32, HUGE)
    return damage


def long_names(elf):
    """DT_STRSZ, of a table that lies in a segment without an end."""
    dynamic = struct.unpack_from("<Q", elf.data, elf.segment(2) + 8)[0]
    for i in range(64):
        if struct.unpack_from("<Q", elf.data, dynamic + 16 * i)[0] == 10:
            elf.set(dynamic + 16 * i + 8, HUGE)


def packed(elf):
    """A compressed section that says that it is larger than it can be."""
    at = elf.section(".debug_info")
    elf.set(at + 8, struct.unpack_from("<Q", elf.data, at + 8)[0] | 0x800)
    struct.pack_into("<IIQQ", elf.data, struct.unpack_from("<Q", elf.data, at + 24)[0], 1, 0, HUGE // 16, 1)


DAMAGES = {
    "symbols": grow(".symtab"), "strings": grow(".strtab"), "names of sections": grow(".shstrtab"),
    "dynamic symbols": grow(".dynsym"), "notes": grow(".note.stapsdt"), "unwind": grow(".eh_frame"),
    "debug": grow(".debug_info"), "debug lines": grow(".debug_line"), "packed": packed,
    "sections": many_sections, "segments": many_segments, "interpreter": grow_segment(3), "dynamic": grow_segment(2),
    "dynamic names": long_names, "nothing": lambda elf: None,
}


@pytest.mark.needs_root
@pytest.mark.parametrize("damage", DAMAGES)
def test_sparse(files, damage):
    """A file of 2 TB that takes some kB of a disk: neither memory nor time goes by what its headers say."""
    elf = Elf(files / "victim")
    DAMAGES[damage](elf)
    elf.write(2 * HUGE)
    for point in ('mark("*")', 'function("*")', 'statement("*@marked.c:*")', 'function("tick").call'):
        child = subprocess.Popen([harness.STAP, "-L", f'process("{files}/victim").{point}'], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        out, err = child.stdout.read(), child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stdout.close()
        child.stderr.close()
        assert child.returncode in (0, 1), (out, err)
        assert usage.ru_maxrss < 900 << 10, f"{usage.ru_maxrss} kB for {point}"


@pytest.mark.needs_root
def test_truncated(files):
    """At each length there is an answer."""
    whole = (files / "victim").read_bytes()
    for i in range(0, 48):
        size = len(whole) * i // 48
        (files / "victim").write_bytes(whole[:size])
        result = harness.stap("-l", f'process("{files}/victim").mark("*")')
        assert result.code in (0, 1), (size, result)
