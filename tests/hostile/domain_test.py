"""Trust domains: processes that may not change each other's memory get no memory in common, and no rights of the tracer."""
import pathlib
import re
import shutil
import subprocess

import pytest

import harness
from hostile.attackers import STRANGER

pytestmark = [pytest.mark.needs_root, pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")]

OTHER = STRANGER + 1

# Each line on stdin is a number: so often is leaf() called.
WORKS = """
import os, sys
def leaf(): pass
print("ready", flush=True)
for line in sys.stdin:
    for i in range(int(line)):
        leaf()
    print("done", flush=True)
"""


class Worker:
    """A Python that waits for orders: of another user, or with something else that makes it another domain."""

    ways = {"same": [], "user": ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"],
            "other": ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups"],
            "capabilities": ["setpriv", "--bounding-set=-sys_boot", "--inh-caps=-sys_boot"],
            "mount": ["unshare", "--mount"], "user namespace": ["unshare", "--user", "--map-root-user"]}

    def __init__(self, interp, way="same"):
        # setpriv changes the user before chroot could be called: the host's interpreter then.
        argv = interp.argv_of(WORKS)
        if self.ways[way] and argv[0] == "chroot":
            pytest.skip("this interpreter needs rights to start")
        self.child = subprocess.Popen([*self.ways[way], *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.child.stdout.readline() == "ready\n"
        self.pid = self.child.pid

    def work(self, n):
        self.child.stdin.write(f"{n}\n")
        self.child.stdin.flush()
        assert self.child.stdout.readline() == "done\n"

    def close(self):
        self.child.kill()
        self.child.communicate()

    def segments(self):
        """Inodes of the shared data that it has mapped."""
        maps = pathlib.Path(f"/proc/{self.pid}/maps").read_text()
        return {line.split()[4] for line in maps.splitlines() if "dtap-data" in line}


@pytest.fixture
def worker(interp):
    made = []

    def make(way="same"):
        made.append(Worker(interp, way))
        return made[-1]

    yield make
    for one in made:
        one.close()


def clauses(body, *workers, name="leaf"):
    return " ".join(f'python{w.pid}:::function-entry /copyinstr(arg1) == "{name}"/ {{ {body} }}' for w in workers)


# Not BEGIN, which fires before events may.
BEGUN = ' tick-10ms /!begun/ { begun = 1; printf("begun\\n"); } '


class Session:
    """A dtrace that has begun."""

    def __init__(self, script, *workers, options=("-x", "place=target"), slow=False):
        words = [harness.DTRACE, "-q", "-x", f"switchrate={'5s' if slow else '10ms'}", *options, "-n", (BEGUN if not slow else 'BEGIN { printf("begun\\n"); } ') + script]
        for one in workers:
            words += ["-p", one.pid]
        self.child = subprocess.Popen([str(w) for w in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        line = self.child.stdout.readline()
        if line != "begun\n":
            raise AssertionError((line, *self.child.communicate()))

    def end(self):
        out, err = harness.interrupt(self.child)
        assert self.child.returncode == 0, (out, err)
        return out, err


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("way", ["user", "capabilities", "mount", "user namespace"])
def test_no_memory_in_common(worker, way):
    """One memory for each domain, one for all of a domain; aggregations and records are put together, in time order."""
    mine, mine_too, theirs = worker(), worker(), worker(way)
    all_of_them = (mine, mine_too, theirs)
    session = Session(clauses('@["all"] = count(); @by[pid] = count(); @q = quantize(1); printf("%d\\n", pid);', *all_of_them),
                      *all_of_them)
    for one in (mine, theirs, mine_too, theirs):
        one.work(5)
    out, err = session.end()
    assert err == "", err
    assert mine.segments() == set() or mine.segments() & theirs.segments() == set()
    lines = out.split("\n")
    order = [int(line) for line in lines if line.isdigit()]
    assert order == [mine.pid] * 5 + [theirs.pid] * 5 + [mine_too.pid] * 5 + [theirs.pid] * 5, out
    assert re.search(r"all\s+20\b", out) and all(re.search(rf"\b{one.pid}\s+{n}\b", out)
                                                 for one, n in ((mine, 5), (mine_too, 5), (theirs, 10))), out


@pytest.mark.interps("3.11")
def test_segments_while_they_run(worker):
    mine, mine_too, theirs, others = worker(), worker(), worker("user"), worker("other")
    all_of_them = (mine, mine_too, theirs, others)
    session = Session(clauses("@ = count();", *all_of_them), *all_of_them)
    for one in all_of_them:
        one.work(1)
    found = [one.segments() for one in all_of_them]
    assert all(len(one) == 1 for one in found), found
    assert found[0] == found[1] and found[0] != found[2] and found[2] != found[3] and found[0] != found[3], found
    out, err = session.end()
    assert (out.split(), err) == (["4"], "")


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("body", ["n++;", "n[pid]++;", "self->s = speculation(); n = self->s;"])
def test_shared_variables_are_refused(worker, body):
    """Globals and shared arrays are for one domain; who asks for the target place is told which variable it is."""
    mine, theirs = worker(), worker("user")
    result = harness.dtrace("-q", "-x", "place=target", "-n", clauses(body, mine, theirs), "-p", mine.pid, "-p", theirs.pid)
    assert result.code == 1 and result.out == "", result
    assert "trust domain" in result.err and f"user {STRANGER}" in result.err and str(theirs.pid) in result.err, result
    assert re.search(r"variable (n|speculation)", result.err), result


@pytest.mark.needs_bpf
@pytest.mark.interps("3.11")
def test_shared_variables_go_to_the_kernel(worker):
    """Of itself such a script runs where its variables are one for all."""
    mine, theirs = worker(), worker("user")
    session = Session(clauses("n++; @ = max(n);", mine, theirs), mine, theirs, options=("-x", "showplace"))
    mine.work(3)
    theirs.work(4)
    out, err = session.end()
    assert "runs in the kernel: processes" in err and "trust domain" in err, err
    assert out.split() == ["7"], out


@pytest.mark.interps("3.11")
def test_one_foreign_domain_may_share(worker):
    """With one domain alone there is nothing to keep apart: the tracer's variables are that domain's."""
    theirs, theirs_too = worker("user"), worker("user")
    session = Session(clauses("n++; @ = max(n);", theirs, theirs_too), theirs, theirs_too)
    theirs.work(3)
    theirs_too.work(4)
    out, err = session.end()
    assert (out.split(), err) == (["7"], "")


def open_to_all(folder):
    """What lies in a folder of pytest's can be read by other users; pytest's own folders are for one user."""
    while "pytest-" in str(folder):
        folder.chmod(0o755)
        folder = folder.parent


@pytest.mark.alone
def test_newcomer_of_another_domain(tmp_path):
    """In a session that shares variables a process that starts later is left out by name; others are not."""
    program = tmp_path / "works.py"
    open_to_all(tmp_path)
    program.write_text("import time\ndef leaf(): pass\nfor i in range(200):\n    leaf()\n    time.sleep(0.01)\n")
    python = "/usr/bin/python3 -S"
    others = " ".join(Worker.ways["user"])
    script = ('python*:::function-entry /copyinstr(arg1) == "leaf"/ { n++; @[uid] = count(); }' + BEGUN)
    words = (f"{harness.DTRACE} -q -x switchrate=10ms -x place=target -n '{script}' >{tmp_path}/out & tracer=$!; "
             f"while ! grep -qs begun {tmp_path}/out; do sleep 0.01; done; {python} {program} & mine=$!; {others} {python} {program} & theirs=$!; wait $mine; wait $theirs; "
             f"kill -INT $tracer; wait $tracer; echo theirs $theirs >&2; cat {tmp_path}/out")
    result = harness.run(["unshare", "--pid", "--mount-proc", "--fork", "sh", "-c", words])
    theirs = int(re.search(r"theirs (\d+)", result.err)[1])
    covered = [int(uid) for uid in re.findall(r"^\s+(\d+)\s+\d+$", result.out, re.M)]
    left_out = [line for line in result.err.splitlines() if "trust domain" in line]
    assert len(covered) == 1 and covered[0] in (0, STRANGER), result
    assert len(left_out) == 1 and "variable n" in left_out[0], result
    if covered == [0]:
        assert f"process {theirs} " in left_out[0], result


# --- the tracer's rights ----------------------------------------------------------------------------------

@pytest.mark.interps("3.11")
@pytest.mark.parametrize("act", ["system", "freopen", "setopt"])
@pytest.mark.parametrize("way", ["user", "capabilities", "user namespace"])
def test_rights_are_not_lent(worker, tmp_path, act, way):
    """What a process of another domain writes has the tracer do nothing with its rights: refused, counted, told once."""
    theirs = worker(way)
    witness = tmp_path / "witness"
    body = {"system": f'system("echo %d >>{witness}", pid);', "freopen": f'freopen("{witness}"); printf("x\\n");',
            "setopt": 'setopt("strsize", "1"); setopt("quiet", "no"); trace(1);'}[act]
    session = Session(clauses(body + " @ = count();", theirs), theirs, options=("-w", "-x", "place=target"))
    theirs.work(7)
    out, err = session.end()
    assert not witness.exists(), witness.read_text()
    assert out.split()[-1] == "7", out
    lines = err.splitlines()
    assert len(lines) == 2 and act in lines[0] and "trust domain" in lines[0] and re.search(r"\b(7|14)\b", lines[1]), err


@pytest.mark.interps("3.11")
def test_rights_of_ones_own_domain(worker, tmp_path):
    """The tracer's own domain, and what the tracer itself fires, acts as ever, also beside others."""
    mine, theirs = worker(), worker("user")
    witness = tmp_path / "witness"
    script = (clauses(f'system("echo own >>{witness}");', mine) + clauses("@ = count();", theirs) +
              f' END {{ system("echo end >>{witness}"); }}')
    session = Session(script, mine, theirs, options=("-w", "-x", "place=target"))
    mine.work(2)
    theirs.work(3)
    out, err = session.end()
    assert (out.split(), err) == (["3"], ""), err
    assert witness.read_text().split() == ["own", "own", "end"]


@pytest.mark.needs_bpf
@pytest.mark.interps("3.11")
def test_rights_are_the_kernel_places(worker, tmp_path):
    """Of itself such a script runs in the kernel, whose records no process can write: there it acts."""
    theirs = worker("user")
    witness = tmp_path / "witness"
    session = Session(clauses(f'system("echo %d >>{witness}", pid);', theirs), theirs, options=("-w", "-x", "showplace"))
    theirs.work(2)
    out, err = session.end()
    assert "runs in the kernel: system() " in err, err
    assert witness.read_text().split() == [str(theirs.pid)] * 2


# Calls leaf() as what it was, and again once it has given up its rights.
DROPS = """
import os, sys
def leaf(): pass
print("ready", flush=True)
sys.stdin.readline()
leaf()
sys.stdin.readline()
os.setresgid(%d, %d, %d)
os.setresuid(%d, %d, %d)
leaf()
print("dropped", flush=True)
sys.stdin.readline()
"""


@pytest.mark.interps("3.11")
def test_rights_that_were_given_up(interp, start, tmp_path):
    """A process keeps the memory that it has when it leaves its domain: from then on nothing is done by it."""
    witness = tmp_path / "witness"
    target = start(interp.argv_of(DROPS % ((STRANGER,) * 6)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert target.stdout.readline() == "ready\n"
    script = f'python{target.pid}:::function-entry /copyinstr(arg1) == "leaf"/ {{ system("echo %d >>{witness}", uid); }}'
    session = Session(script, target, options=("-w", "-x", "place=target"))
    target.stdin.write("go\n")
    target.stdin.flush()
    harness.wait_until(lambda: witness.exists() and witness.read_text(), what="the first action")
    target.stdin.write("go\n")
    target.stdin.flush()
    assert target.stdout.readline() == "dropped\n"
    out, err = session.end()
    assert witness.read_text().split() == ["0"] and "trust domain" in err, (witness.read_text(), err)


# Room for a command.
HARMLESS = "harmless" + 200 * "_"

# Looks for the records in the memory that it shares with the tracer, and writes its own words into them: a copy of each
# record that it has written has another command.
FORGES = """
import re, sys, time
def %s(): pass
print("ready", flush=True)
sys.stdin.readline()
for i in range(50):
    %s()
    time.sleep(0.01)
hits = 0
with open("/proc/self/maps") as maps:
    ranges = [line.split()[0] for line in maps if "dtap-data" in line and " rw" in line]
for r in ranges:
    low, high = (int(x, 16) for x in r.split("-"))
    with open("/proc/self/pagemap", "rb") as pages, open("/proc/self/mem", "r+b", buffering=0) as mem:
        for at in range(low, high, 1 << 21):
            pages.seek(at // 4096 * 8)
            entries = pages.read(min(1 << 21, high - at) // 4096 * 8)
            for k in range(0, len(entries), 8):
                if not entries[k + 7] & 0xc0:
                    continue
                page = at + k // 8 * 4096
                mem.seek(page)
                text = mem.read(4096)
                for found in re.finditer(b"harmless", text):
                    mem.seek(page + found.start())
                    mem.write(b";" + sys.argv[1].encode() + b"\\0")
                    hits += 1
print("forged", hits, flush=True)
sys.stdin.readline()
""" % ((HARMLESS,) * 2)


@pytest.mark.interps("3.11")
@pytest.mark.parametrize("shared", ["", "n++; "], ids=["alone", "shared variable"])
def test_forged_commands(interp, tmp_path, shared):
    """A target that writes commands into its records, where the script takes a word of its own from there."""
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/done\n")
    program.chmod(0o755)
    open_to_all(tmp_path)
    child = subprocess.Popen([*Worker.ways["user"], *interp.argv_of(FORGES, program)], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        script = clauses(shared + 'system("true %s", copyinstr(arg1));', child, name=HARMLESS)
        session = Session(script, child, options=("-w", "-x", "place=target", "-x", "strsize=512"),
                          slow=True)
        child.stdin.write("go\n")
        child.stdin.flush()
        assert int(child.stdout.readline().split()[1]) >= 1
        session.end()
        assert not (tmp_path / "done").exists()
    finally:
        child.kill()
        child.communicate()


# --- ordinary users ---------------------------------------------------------------------------------------

@pytest.mark.interps("3.11")
@pytest.mark.parametrize("how", ["-c", "-p"])
def test_ordinary_users_sessions(interp, how):
    """A user without privileges traces what is theirs, with variables, and with -w."""
    nobody = Worker.ways["user"]
    script = ('python$target:::function-entry /copyinstr(arg1) == "leaf"/ { n++; } '
              'END { printf("%d\\n", n); system("id -u"); }')
    argv = interp.argv_of(WORKS)
    if argv[0] == "chroot":
        pytest.skip("this interpreter needs rights to start")
    if how == "-c":
        child = subprocess.Popen([*nobody, str(harness.DTRACE), "-qwn", script, "-c", " ".join(argv)], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout.readline() == "ready\n"
        out, err = child.communicate("5\n", timeout=harness.TIMEOUT_S)
        assert (child.returncode, err, out.split()) == (0, "", ["done", "5", str(STRANGER)]), (out, err)
        return
    target = Worker(interp, "user")
    try:
        child = subprocess.Popen([*nobody, str(harness.DTRACE), "-qwn", script + BEGUN, "-p",
                                  str(target.pid)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True)
        assert child.stdout.readline() == "begun\n", child.communicate()
        target.work(5)
        target.child.stdin.close()
        out, err = child.communicate(timeout=harness.TIMEOUT_S)
        assert (child.returncode, err, out.split()) == (0, "", ["5", str(STRANGER)]), (out, err)
    finally:
        target.child.kill()
        target.child.wait()
