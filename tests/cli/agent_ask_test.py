"""Where the agent is installed, Pythons ask for sessions when they start (src/abi/ask.h): their first call is counted.

Each test has the processes of a pid namespace, and a folder /run, to itself.
"""
import os
import re
import shutil

import pytest

import harness
from agent_command_test import Venv

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_bpf,
              pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")]

# An interpreter with a root of its own has the same /run.
RUN_OF = "mount -t tmpfs -o mode=755 run /run && if [ -n \"$0\" ]; then mount --bind /run \"$0\"/run; fi && exec \"$@\""
CALLS = 50
NAME = f"short{os.getpid()}.py"	# probes in the kernel are those of the whole machine
PROGRAM = f"def f(): pass\nfor i in range({CALLS}): f()\n"

# $1: how many Pythons; $2: what is done before they are started; $3: their command; then the tracer.  Its number is $tracer.
RUN = r"""
n=$1 before=$2 command=$3 out=$4
shift 4
: >"$out"
"$@" >"$out" &
tracer=$!
while ! grep -qs armed "$out"; do
    kill -0 $tracer || exit 3
    sleep 0.02
done
eval "$before"
for i in $(seq $n); do $command || exit 4; done
kill -CONT $tracer
kill -INT $tracer
wait $tracer
"""

COUNT = ('BEGIN { printf("armed\\n"); } '
         f'python*:::function-entry /copyinstr(arg1) == "f" && basename(copyinstr(arg0)) == "{NAME}"/ {{ @ = count(); }} '
         'END { printa("%@d\\n", @); }')


def alone(interp, *argv):
    return ["unshare", "--mount", "--pid", "--mount-proc", "--fork", "sh", "-c", RUN_OF, interp.root, *argv]


def run(tmp_path, interp, n, command, *options, before=""):
    """How many calls were counted, of how many Pythons the tracer told, and the result."""
    out = tmp_path / "out"
    result = harness.run(alone(interp, "sh", "-c", RUN, "sh", str(n), before, command, out, harness.DTRACE, "-q", *options, "-n", COUNT),
                         timeout=harness.TIMEOUT_S + n)
    assert result.code == 0, result
    counted = [int(word) for word in out.read_text().split()[1:]]
    told = sum(map(int, re.findall(r"# dtrace: (\d+) programs? ", result.err)))
    return sum(counted), told, result


@pytest.fixture
def venv(interp):
    made = Venv(interp)
    assert made.agent("install").code == 0
    return made


@pytest.mark.parametrize("place", ["kernel", "target"])
def test_every_call(venv, interp, tmp_path, place):
    """Short programs, one after another.  Of one that a busy machine has not served in time the tracer tells."""
    n = 1000 if harness.NIGHTLY else 10
    program = interp.add(PROGRAM, NAME)
    counted, told, result = run(tmp_path, interp, n, " ".join([*venv.argv, program]), "-x", f"place={place}")
    print(f"Python {interp.version}: of {CALLS * n} calls {counted} counted, {told} programs told")
    assert CALLS * (n - told) <= counted <= CALLS * n, result
    assert not harness.NIGHTLY or told <= n // 100, result


def test_tracemalloc(venv, interp, tmp_path):
    """Before CPython 3.12.9 and 3.13.2 tracemalloc lets the agent's thread not take the GIL; the thread that waits does its work."""
    program = interp.add(PROGRAM, NAME)
    counted, told, result = run(tmp_path, interp, 3, " ".join([*venv.argv, "-X", "tracemalloc", program]))
    assert CALLS * (3 - told) <= counted <= CALLS * 3, result


@pytest.mark.interps("3.13")
def test_without_site(venv, interp, tmp_path):
    """With -S nobody asks: it is told of each, where others do."""
    program = interp.add(PROGRAM, NAME)
    both = tmp_path / "both"
    both.write_text(f"{' '.join([*venv.argv, program])}\n{' '.join([*venv.argv, '-S', program])}\n")
    counted, told, result = run(tmp_path, interp, 5, f"sh {both}")
    assert CALLS * (10 - told) <= counted <= CALLS * 10 and told >= 5, result


@pytest.mark.interps("3.9", "3.13")
def test_hung_tracer(venv, interp, tmp_path):
    """Programs go on although the tracer is stopped."""
    run(tmp_path, interp, 3, " ".join([*venv.argv, interp.add(PROGRAM, NAME)]), before="kill -STOP $tracer")


@pytest.mark.interps("3.11")
@pytest.mark.skipif(not shutil.which("perl"), reason="no perl")
def test_stranger(venv, interp, tmp_path):
    """Who is no Python is told nothing: the connection is closed."""
    ask = tmp_path / "ask.pl"
    ask.write_text('socket(S, 1, 5, 0) or die; connect(S, pack("Sa*", 1, glob("/run/dtap/ask-*"))) or die $!;\n'
                   '$n = sysread(S, $b, 100); print STDERR "answer: ", defined $n ? $n : -1, "\\n";\n')
    counted, told, result = run(tmp_path, interp, 1, " ".join([*venv.argv, interp.add(PROGRAM, NAME)]),
                                before=f"perl {ask}")
    assert "answer: 0\n" in result.err, result


# --- whom a starting Python believes ------------------------------------------------------------------------

NOBODY = 65534

# Make @folder, as @owner with @mode, and listen in it; answer with @object.  What came is told on stderr.
LISTENER = """
import array, os, socket, sys
folder, owner, mode, uid, listens, object_mode = sys.argv[1], *(int(word, 8 if i in (1, 4) else 10) for i, word in enumerate(sys.argv[2:7]))
link, target, command = sys.argv[7], sys.argv[8], sys.argv[9:]
# Both sides have a processor when they want it: who asks waits 100 ms, which a busy machine may take.
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
os.umask(0)
above = os.path.dirname(folder)
if above != "/run":
    os.mkdir("/run/user")
    os.chmod("/run/user", 0o755)
    os.mkdir(above)
    os.chown(above, uid, uid)
    os.chmod(above, 0o700)
real = link or folder
os.mkdir(real)
os.chmod(real, mode)
if link:
    os.symlink(link, folder)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(real + "/ask-1-x")
os.chmod(real + "/ask-1-x", 0o666)
os.chown(real, owner, owner)
os.seteuid(listens)
listener.listen()
os.seteuid(0)
fd = os.open(target, os.O_RDONLY)
os.fchmod(fd, object_mode)
child = os.fork()
if not child:
    listener.close()
    os.execvp(command[0], command)
listener.settimeout(0.05)
asked = 0
while True:
    try:
        connection, _ = listener.accept()
        asked += 1
        try:
            connection.sendmsg([bytes(4)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
        except OSError:
            pass
        connection.close()
    except TimeoutError:
        if os.waitpid(child, os.WNOHANG)[0]:
            break
print("asked" if asked else "not asked")
"""
SHOWS = "print('loaded' if any('sent.so' in line for line in open('/proc/self/maps')) else 'not loaded', flush=True)"


@pytest.fixture
def believes(venv, interp):
    """How a Python of user @uid starts beside such a listener."""
    def go(folder="/run/dtap", owner=0, mode="755", uid=0, listens=0, object_mode="755", link="", more=()):
        sent = interp.dir / "sent.so"
        shutil.copy(harness.AGENT, sent)
        script = interp.dir / "listener.py"
        script.write_text(LISTENER)
        drop = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *more] if uid else []
        result = harness.run(alone(interp, "/usr/bin/python3", script, folder, owner, mode, uid, listens, object_mode, link, sent,
                                   *drop, *venv.argv, "-c", SHOWS))
        assert result.code == 0 and result.err == "", result
        return result.out.split("\n")[:2]
    return go


USERS = {"folder": f"/run/user/{NOBODY}/dtap", "owner": NOBODY, "mode": "700", "uid": NOBODY, "listens": NOBODY}
believe = pytest.mark.interps("3.11")


@believe
def test_believes_root(believes):
    assert believes() == ["loaded", "asked"]


@believe
def test_another_user_believes_root(believes):
    assert believes(uid=NOBODY) == ["loaded", "asked"]


@believe
def test_believes_its_own_user(believes):
    """The object is root's."""
    assert believes(**USERS) == ["loaded", "asked"]


@believe
@pytest.mark.parametrize("wrong", [{"mode": "777"}, {"mode": "775"}, {"mode": "1777"}, {"owner": NOBODY}, {"link": "/run/elsewhere"}],
                         ids=lambda wrong: "-".join(map(str, *wrong.items())))
def test_does_not_believe_a_folder(believes, wrong):
    """Which others can write to, or is theirs, or is reached by a link."""
    assert believes(**wrong) == ["not loaded", "not asked"]


@believe
def test_does_not_believe_a_listener(believes):
    """The folder and the socket are root's; who listens is another user."""
    assert believes(listens=NOBODY)[0] == "not loaded"


@believe
@pytest.mark.parametrize("mode", ["757", "775"])
def test_does_not_load_what_others_can_write(believes, mode):
    assert believes(object_mode=mode) == ["not loaded", "asked"]


@believe
@pytest.mark.parametrize("wrong", [{"owner": NOBODY - 1, "mode": "755", "listens": NOBODY - 1}, {"listens": 0}, {"mode": "777"},
                                   {"folder": f"/run/user/{NOBODY - 1}/dtap"}],
                         ids=["owner", "listener", "mode", "other"])
def test_does_not_believe_another_user(believes, wrong):
    assert believes(**{**USERS, **wrong})[0] == "not loaded"


@believe
def test_capable_believes_root_alone(believes):
    more = ["--inh-caps=+net_raw", "--ambient-caps=+net_raw"]
    assert believes(**USERS, more=more) == ["not loaded", "not asked"]
    assert believes(uid=NOBODY, more=more) == ["loaded", "asked"]


@believe
def test_not_dumpable_believes_root_alone(believes, venv):
    """PR_SET_DUMPABLE, by a line that site executes before the agent's."""
    pth = next(venv.folder.rglob("dtap-agent.pth")).with_name("a.pth")
    pth.write_text("import ctypes; ctypes.CDLL(None).prctl(4, 0)\n")
    assert believes(**USERS) == ["not loaded", "not asked"]


# --- what a tracer meets ---------------------------------------------------------------------------------

def begun(tmp_path, interp, venv, first, n=3):
    """Count with a tracer before whose start the shell does @first."""
    program = interp.add(PROGRAM, NAME)
    out = tmp_path / "out"
    result = harness.run(alone(interp, "sh", "-c", RUN, "sh", str(n), "ls -a /run/dtap >&2", " ".join([*venv.argv, program]), out,
                               "sh", "-c", f'umask 077; {first}; exec "$@"', "sh", harness.DTRACE, "-qn", COUNT))
    told = sum(map(int, re.findall(r"# dtrace: (\d+) programs? ", result.err)))
    counted = sum(int(word) for word in out.read_text().split()[1:])
    assert result.code == 0 and CALLS * (n - told) <= counted <= CALLS * n, result
    return result


BIND = "import socket, os; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind('/run/dtap/ask-1-old'); s.listen(0)"


@believe
def test_dead_tracers_socket(venv, interp, tmp_path):
    """Pythons go on, and the next tracer removes it."""
    result = begun(tmp_path, interp, venv, f'mkdir -m 755 /run/dtap; /usr/bin/python3 -c "{BIND}"')
    assert "ask-1-old" not in result.err and "ask-1-" in result.err, result


@believe
def test_full_queue(venv, interp, tmp_path):
    """A tracer that lives, and accepts nothing; its queue is full.  Nobody waits for it, nor takes its name away."""
    full = BIND + "; c = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for i in range(3)]; [x.setblocking(False) for x in c]; " \
                  "[x.connect_ex('/run/dtap/ask-1-old') for x in c]; print('full', flush=True); import time; time.sleep(1000)"
    result = begun(tmp_path, interp, venv, f'mkdir -m 755 /run/dtap; /usr/bin/python3 -c "{full}" >{tmp_path}/full & '
                   f'while ! grep -qs full {tmp_path}/full; do sleep 0.02; done')
    assert "ask-1-old" in result.err, result


@believe
@pytest.mark.parametrize("first", ["mkdir -m 777 /run/dtap", "mkdir /run/dtap; chown 65534 /run/dtap", "mkdir /run/x; ln -s x /run/dtap",
                                   "touch /run/dtap"], ids=["mode", "owner", "link", "file"])
def test_tracer_leaves_a_foreign_folder_alone(venv, interp, tmp_path, first):
    """It says so; Pythons get the agent later."""
    result = begun(tmp_path, interp, venv, first)
    assert "/run/dtap, where starting Pythons ask" in result.err and "ask-1-" not in result.err, result


@believe
def test_folder_is_removed(venv, interp, tmp_path):
    """With the last session, so that a start costs one failed open again."""
    program = interp.add(PROGRAM, NAME)
    out = tmp_path / "out"
    result = harness.run(alone(interp, "sh", "-c", RUN + "ls /run", "sh", "1", "", " ".join([*venv.argv, program]), out, harness.DTRACE, "-qn", COUNT))
    assert result.code == 0 and result.out == "", result
