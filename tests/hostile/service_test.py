"""A service of root's, and the other users of its machine: what they own it does not believe, and what it knows they do not get."""
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import threading

import pytest

import harness
from serving import DTAP, PROGRAM, Service, programs, rule, serve, total, traced      # noqa: F401: serve and programs are fixtures

pytestmark = pytest.mark.needs_root

NOBODY = 65534
HOLDER = "/run/dtap/hold-1"


def as_user(uid, *argv):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *argv]


def let_see(path):
    """Others may go through the folders above."""
    for folder in [path, *path.parents]:
        if str(folder).startswith("/tmp/") and folder.stat().st_mode & 0o5 != 0o5:
            folder.chmod(0o755)


# --- what it reads --------------------------------------------------------------------------------------

def files(folder):
    """A configuration with a script and a token beside it."""
    folder.mkdir()
    (folder / "token").write_text("0123456789abcdef0123\n")
    (folder / "token").chmod(0o600)
    (folder / "a.d").write_text("BEGIN { @n = count(); }\n")
    (folder / "x.yaml").write_text(f"token_file: {folder}/token\nscripts: {{ a: {{ script: {folder}/a.d }} }}\n")
    return harness.run([DTAP, "serve", "--check", "-f", folder / "x.yaml"])


def own(path):
    os.chown(path, NOBODY, NOBODY)


def writable(path):
    path.chmod(path.stat().st_mode | stat.S_IWOTH)


def by_group(path):
    os.chown(path, 0, NOBODY)
    path.chmod(path.stat().st_mode | stat.S_IWGRP)


@pytest.mark.parametrize("what", ["x.yaml", "a.d", "token", "", ".."])
@pytest.mark.parametrize("how", [own, writable, by_group])
def test_what_others_could_have_written(tmp_path, what, how):
    """The configuration, its script and its token; the folder that they are in, and the one above."""
    let_see(tmp_path)
    (tmp_path / "above").mkdir()
    folder = tmp_path / "above" / "in"
    assert files(folder).code == 0
    how(folder / what if what != ".." else folder.parent)
    result = harness.run([DTAP, "serve", "--check", "-f", folder / "x.yaml"])
    assert result.code == 1 and "is refused: others than root" in result.err, result


def test_what_they_could_not(tmp_path):
    """In a folder with the sticky bit files are their owners'; a group of root's, or a user's own, is not of others."""
    folder = tmp_path / "sticky"
    assert files(folder).code == 0
    folder.chmod(0o1777)
    (folder / "x.yaml").chmod(0o664)
    assert harness.run([DTAP, "serve", "--check", "-f", folder / "x.yaml"]).code == 0


def test_users_believe_root(tmp_path):
    """A user's service, and a configuration of root's."""
    let_see(tmp_path)
    config = tmp_path / "x.yaml"
    config.write_text("scripts: { a: { program: 'BEGIN { }' } }\n")
    assert harness.run(as_user(NOBODY, DTAP, "serve", "--check", "-f", config)).code == 0
    os.chown(config, NOBODY - 1, NOBODY - 1)
    assert "is refused" in harness.run(as_user(NOBODY, DTAP, "serve", "--check", "-f", config)).err


# --- what it writes -------------------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "spool", "folder"])
def test_outputs_that_another_user_has_made(serve, tmp_path, kind):
    """In a folder where all may write, somebody has been there before: nothing is written, and that is told."""
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o1777)
    there = public / "there"
    there.touch() if kind == "file" else there.mkdir()
    own(there)
    conf = {"file": f"{{ file: {there} }}", "spool": f"{{ http: \"http://127.0.0.1:1/\", spool: {there} }}",
            "folder": f"{{ folder: {there}, interval: 1 }}"}[kind]
    use = "profiles" if kind == "folder" else "events"
    program = "tick-100ms { @n[ustack()] = count(); }" if use == "profiles" else 'BEGIN { printf("secret"); }'
    service = serve(f"listen: 127.0.0.1:0\noutputs: {{ out: {conf} }}\n"
                    f"scripts: {{ a: {{ program: '{program}', {use}: out, options: {{ place: kernel }} }} }}\n")
    service.until(lambda found: total(found, "dtap_serve_output_failures_total") > 0 and not total(found, "dtap_serve_output_up"),
                  "a failure")
    service.heard("output out: ")
    assert (there.stat().st_size == 0 if kind == "file" else not list(there.iterdir()))
    assert there.stat().st_uid == NOBODY
    assert service.end() == 0


# --- who may use it -------------------------------------------------------------------------------------

REFUSED = "0", "Connection reset by peer", "Broken pipe"

# Connects, says that it is a tracer with an object of its own, and shows the answer.
JOINS = """
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
try:
    s.connect(sys.argv[1])
    s.send(struct.pack("=IiQII", 4, 0, 0, 0, 0) + sys.argv[2].encode().ljust(4096, b"\\0") + b"x".ljust(96, b"\\0"))
    print(len(s.recv(100)))
except OSError as e:
    print(e.strerror)
"""


@pytest.mark.alone
def test_who_may_hold(serve):
    """The holder of starting programs serves those alone that may trace others anyway."""
    service = serve("listen: 127.0.0.1:0\nscripts: { calls: { command: calls } }\n")
    service.until(lambda found: total(found, "dtap_serve_script_up") == 1, "the script")

    def joins(*wrapper):
        return harness.run([*wrapper, "/usr/bin/python3", "-c", JOINS, HOLDER, str(harness.AGENT)]).out.strip()
    # A holder that was killed has left its socket there, with nobody behind it.
    harness.wait_until(lambda: joins() == "24", what="the holder")
    assert joins(*as_user(NOBODY)) == "Permission denied"
    assert joins("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace") in REFUSED
    if shutil.which("unshare"):
        assert joins("unshare", "--pid", "--fork") in REFUSED
    assert service.end() == 0
    harness.wait_until(lambda: not os.path.exists(HOLDER), what="the holder's end")


@pytest.mark.interps("3.11")
def test_services_of_users_see_their_own(interp, tmp_path, monkeypatch):
    """Two ordinary users, each with a program and a service about all programs of the test: each sees its own one."""
    let_see(tmp_path)
    children, services = [], []
    config = tmp_path / "x.yaml"
    config.write_text("listen: 127.0.0.1:0\n"
                      f"rules: {{ mine: {{ environment: {{ DTAP_SERVE_TEST: \"{tmp_path}\" }} }} }}\n"
                      "scripts: { calls: { command: calls leaf, rule: mine, metrics: { calls: { labels: [file] } } } }\n")
    users = NOBODY, NOBODY - 1
    monkeypatch.chdir("/")
    try:
        for uid in users:
            script = tmp_path / f"of{uid}.py"
            script.write_text(PROGRAM)
            children.append(subprocess.Popen(as_user(uid, "/usr/bin/python3", script), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             text=True, env={**os.environ, "DTAP_SERVE_TEST": str(tmp_path)}))
            assert children[-1].stdout.readline() == "ready\n"
        for uid in users:
            services.append(Service(config, wrapper=as_user(uid)))
        for service in services:
            traced(service, "calls", 1)
        for i, child in enumerate(children):
            child.stdin.write(f"call {7 + i}\n")
            child.stdin.flush()
            assert child.stdout.readline() == f"{7 + i}\n"
        for i, (uid, service) in enumerate(zip(users, services)):
            found = {dict(at)["file"]: n for (name, *at), n in service.metrics().items() if name == "dtap_calls_calls_total"}
            assert found == {str(tmp_path / f"of{uid}.py"): 7 + i}
    finally:
        for child in children:
            child.kill()
            child.communicate()
        for service in services:
            assert service.end() == 0


# --- who asks without end -------------------------------------------------------------------------------

ASKS = """
import socket, sys
held = []
while True:
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    try:
        s.sendall(b"GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
        s.settimeout(5)
        while s.recv(65536) and sys.argv[2] == "reads":
            pass
        held.append(s)
        del held[:-20]
    except OSError:
        pass
"""


@pytest.mark.interps("3.13")
def test_asking_without_end(interp, serve, programs, tmp_path):
    """Another user asks all the time, and keeps connections: nothing is lost, and who waits gets an answer."""
    child = programs.start(interp.argv_of(PROGRAM))
    service = serve(f"listen: 127.0.0.1:0\noutputs: {{ log: {{ file: {tmp_path}/log }} }}\n{rule(programs)}scripts:\n"
                    "  calls: { command: calls leaf, rule: mine }\n"
                    "  told: { rule: mine, events: log, program: "
                    "'python*:::function-entry /copyinstr(arg1) == \"leaf\"/ { printf(\"%d\", arg2); @[arg2] = count(); }' }\n")
    for script in "calls", "told":
        traced(service, script, 1)
    port = str(service.address().port)
    asking = [subprocess.Popen(as_user(NOBODY, "/usr/bin/python3", "-c", ASKS, port, how), stderr=subprocess.DEVNULL)
              for how in ("reads", "reads", "keeps")]
    try:
        for _ in range(20):
            programs.tell(child, "call", 500)
        found = service.until(lambda found: total(found, "dtap_serve_events_total") == programs.called == 10000, "all events")
        assert total(found, "dtap_calls_calls_total") == 10000 and not total(found, "dtap_serve_lost_total"), service.lines
    finally:
        for one in asking:
            one.kill()
            one.wait()
    programs.end(child)
    assert service.end() == 0
