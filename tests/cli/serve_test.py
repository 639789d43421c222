"""dtap serve.  The witness is what the traced programs count themselves."""
import ctypes
import http.client
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess

import pytest

import harness
from serving import DTAP, PROGRAM, Prometheus, parsed, programs, rule, serve, total, traced      # noqa: F401: serve and programs are fixtures

# --- counts ---------------------------------------------------------------------------------------------

COUNTS = """listen: 127.0.0.1:0
{rule}scripts:
  calls: {{ command: calls leaf work, rule: mine }}
  lines:
    rule: mine
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf" || copyinstr(arg1) == "work"/
      {{
        @line[copyinstr(arg1)] = lquantize(arg2, 0, 100, 5);
        @whole = sum(1);
        @least = min(arg2);
        @mean[copyinstr(arg1)] = avg(arg2);
      }}
{more}"""


@pytest.mark.needs_root
def test_counts(interp, serve, programs):
    """Programs that run already, come, go and fork; and what is reloaded meanwhile goes on."""
    argv = interp.argv_of(PROGRAM)
    first = programs.start(argv)
    service = serve(COUNTS.format(rule=rule(programs), more=""))
    traced(service, "calls", 1)
    traced(service, "lines", 1)
    second = programs.start(argv)
    traced(service, "calls", 2)
    traced(service, "lines", 2)
    programs.tell(first, "call", 100)
    programs.tell(second, "fork", 30)
    programs.tell(second, "call", 7)
    programs.end(second)
    traced(service, "calls", 1)
    # What a script says stays the same, so that its counts go on; one more is started, one is shown otherwise.
    service.child.args[3].write_text(COUNTS.format(rule=rule(programs), more="""    metrics:
      whole: { name: all_calls_total, help: "of both" }
      mean: { labels: ["-"] }
  more: { command: "calls leaf", rule: mine }
"""))
    service.child.send_signal(signal.SIGHUP)
    service.heard("the configuration was read again")
    traced(service, "more", 1)
    programs.tell(first, "fork", 40)
    programs.tell(first, "call", 3)
    found = service.metrics()
    assert programs.called == 180
    assert total(found, "dtap_calls_calls_total", function="leaf") == 180
    assert total(found, "dtap_calls_calls_total", function="work") == 5
    assert total(found, "dtap_more_calls_total", function="leaf") == 43
    assert found[("all_calls_total",)] == 185 and total(found, "dtap_lines_whole_total") == 0
    lines = {"leaf": 3, "work": 5}
    assert found[("dtap_lines_least",)] == 3
    assert found[("dtap_lines_mean_count",)] == 185 and found[("dtap_lines_mean_sum",)] == 180 * 3 + 5 * 5
    for name, n in ("leaf", 180), ("work", 5):
        buckets = {dict(at)["le"]: count for (metric, *at), count in found.items()
                   if metric == "dtap_lines_line_bucket" and ("key1", name) in at}
        assert buckets.pop("+Inf") == n == found[("dtap_lines_line_count", ("key1", name))]
        assert buckets and all(count == (n if float(le) >= lines[name] else 0) for le, count in buckets.items()), buckets
    assert not any("pid" in dict(at) for _, *at in found)
    assert total(found, "dtap_serve_lost_total") == total(found, "dtap_serve_refused_total") == 0
    assert total(found, "dtap_serve_attached_total", script="calls") >= 2
    assert total(found, "dtap_serve_script_starts_total", script="calls") == 1
    assert found[("dtap_serve_reloads_total",)] == found[("dtap_serve_config_ok",)] == 1
    programs.end(first)
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.needs_bpf
def test_short_ones_are_told(interp, serve, programs):
    """Each Python that ends before it is traced is counted: as one of the rule, or as one that nobody could look at."""
    service = serve(f"listen: 127.0.0.1:0\n{rule(programs)}scripts: {{ calls: {{ command: calls, rule: mine }} }}\n")
    service.until(lambda found: total(found, "dtap_serve_script_up", script="calls") == 1, "the script's start")
    for _ in range(8):
        subprocess.run(interp.argv_of("pass"), env={**os.environ, "DTAP_SERVE_TEST": programs.mark}, check=True)

    def told(found):
        return sum(total(found, f"dtap_serve_{what}_total", script="calls") for what in ("attached", "refused", "unseen"))
    service.until(lambda found: told(found) >= 8, "all of them")
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.needs_bpf
@pytest.mark.alone
@pytest.mark.interps("3.11")
def test_each_script_counts_short_ones(interp, serve, programs):
    """Scripts of one service, of which each selects other processes and one all: short Pythons count whole in each, or are told."""
    n, calls = 5, 10
    rules = "".join(f"  r{i}: {{ environment: {{ DTAP_SERVE_TEST: \"{programs.mark}{i}*\" }} }}\n" for i in ("", 0, 1))
    service = serve(f"listen: 127.0.0.1:0\nrules:\n{rules}scripts:\n" +
                    "".join(f"  s{i}: {{ command: calls leaf, rule: r{i} }}\n" for i in ("", 0, 1)))
    service.until(lambda found: total(found, "dtap_serve_script_up") == 3, "the scripts")
    program = f"def leaf(n): pass\nfor i in range({calls}): leaf(i)\n"
    for i in (0, 1) * n:
        subprocess.run(interp.argv_of(program), env={**os.environ, "DTAP_SERVE_TEST": f"{programs.mark}{i}"}, check=True)

    def told(found, script, *what):
        return sum(total(found, f"dtap_serve_{name}_total", script=script) for name in what)
    for script, mine in ("s", 2 * n), ("s0", n), ("s1", n):
        found = service.until(lambda found, script=script, mine=mine: told(found, script, "attached", "refused", "unseen") >= mine,
                              f"all of {script}")
        short = mine - told(found, script, "begun", "refused", "unseen")
        assert calls * short <= total(found, f"dtap_{script}_calls_total") <= calls * mine, (found, service.lines)
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.13")
def test_many_scripts(interp, serve, programs):
    """Twelve scripts, each a session of its own in the process."""
    child = programs.start(interp.argv_of(PROGRAM))
    scripts = "".join(f"  s{i}: {{ command: calls leaf, rule: mine }}\n" for i in range(12))
    service = serve(f"listen: 127.0.0.1:0\n{rule(programs)}scripts:\n{scripts}")
    for i in range(12):
        traced(service, f"s{i}", 1)
    programs.tell(child, "call", 7)
    programs.tell(child, "fork", 3)
    service.until(lambda found: all(total(found, f"dtap_s{i}_calls_total", function="leaf") == 10 for i in range(12)), "10 calls in each")
    programs.end(child)
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_openmetrics_and_bound(interp, serve, programs, tmp_path):
    """A bound on series, beyond which sums stay right; OpenMetrics' own rules; a text file; a refused configuration."""
    child = programs.start(interp.argv_of("def leaf(n): pass\n" + "".join(f"def f{i}(): leaf({i})\n" for i in range(30)) + """
import sys
print("ready", flush=True)
for line in sys.stdin:
    for i in range(30):
        for k in range(i + 1):
            globals()["f%d" % i]()
    print(0, flush=True)
"""))
    textfile = tmp_path / "dtap.prom"
    config = f"""listen: 127.0.0.1:0
series: 10
textfile: {{ path: {textfile}, interval: 1 }}
{rule(programs)}scripts:
  f:
    rule: mine
    program: |
      python*:::function-entry /basename(copyinstr(arg0)) == "script.py"/
        {{ @n[copyinstr(arg1), strjoin("a\\"\\n\\\\", copyinstr(arg1))] = count(); }}
    metrics: {{ n: {{ name: f_calls, labels: [function, odd] }} }}
"""
    service = serve(config)
    traced(service, "f", 1)
    child.stdin.write("go\n")
    child.stdin.flush()
    assert child.stdout.readline() == "0\n"
    accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    answer, text = harness.wait_until(lambda: service.asked("f_calls", Accept=accept))
    assert answer.getheader("Content-Type").startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1 and "# TYPE f_calls counter\n" in text
    found = {dict(at)["function"]: (n, dict(at)["odd"]) for (name, *at), n in parsed(text).items() if name == "f_calls_total"}
    calls = {"leaf": 465} | {f"f{i}": i + 1 for i in range(30)}
    assert len(found) == 11 and sum(n for n, _ in found.values()) == sum(calls.values())
    assert found.pop("(other)")[1] == "(other)"
    # The largest come first.
    assert set(found) == {"leaf"} | {f"f{i}" for i in range(21, 30)}
    assert all(n == calls[name] and odd == 'a\\"\\n\\\\' + name for name, (n, odd) in found.items()), found
    found, text = service.metrics(), service.ask()[1]
    assert "# TYPE f_calls_total counter\n" in text and "EOF" not in text
    assert found[("dtap_serve_series_over", ("script", "f"), ("metric", "f_calls"))] == 21
    assert found[("dtap_serve_series", ("script", "f"), ("metric", "f_calls"))] == 11
    harness.wait_until(lambda: textfile.exists() and total(parsed(textfile.read_text()), "f_calls_total") == 930, what="the file")
    health = re.findall(r"^HEALTH\w*\((\w+), (\w+)", (harness.TOP / "src/cmd/serve/health.def").read_text(), re.M)
    page = (harness.TOP / "doc/man/dtap-serve.1").read_text()
    for name, kind in health:
        name += "_total" if kind == "COUNTER" else ""
        assert f"# TYPE {name} {kind.lower()}\n" in text and name in page, name
    assert found[("dtap_serve_script_up", ("script", "f"))] == 1
    assert found[("process_resident_memory_bytes",)] > 1e6 and found[("process_open_fds",)] > 3
    # A configuration with a mistake changes nothing.
    service.child.args[3].write_text(config + "nosuch: 1\n")
    service.child.send_signal(signal.SIGHUP)
    service.heard("the one before is in force")
    assert any(re.search(r"serve\.yaml:\d+:1: the configuration has no 'nosuch'", line) for line in service.lines)
    found = service.metrics()
    assert found[("dtap_serve_config_ok",)] == 0 and total(found, "f_calls_total") == 930
    assert service.ask("/")[0].status == 200 and service.ask("/nosuch")[0].status == 404
    assert service.ask(method="POST")[0].status == 405
    assert service.end() == 0 and not textfile.exists()


# --- its end --------------------------------------------------------------------------------------------

HOOKED = """
import sys, time
def leaf():
    pass
def hooked():
    return any(sys.monitoring.get_tool(i) and sys.monitoring.get_events(i) for i in range(6))
print("ready", flush=True)
sys.stdin.readline()
print(hooked(), flush=True)
while hooked():
    time.sleep(0.01)
print("free", flush=True)
"""


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("n", [1, 12])
def test_killed(interp, serve, programs, n):
    """A service that is killed leaves no hook in the programs, also one with many scripts."""
    child = programs.start(interp.argv_of(HOOKED))
    scripts = "".join(f"  s{i}: {{ command: calls, rule: mine }}\n" for i in range(n))
    service = serve(f"listen: 127.0.0.1:0\n{rule(programs)}scripts:\n{scripts}")
    for i in range(n):
        traced(service, f"s{i}", 1)
    child.stdin.write("go\n")
    child.stdin.flush()
    assert child.stdout.readline() == "True\n"
    assert service.end(signal.SIGKILL) == -signal.SIGKILL
    assert child.stdout.readline() == "free\n"


PTRACE_CONT, PTRACE_SEIZE, PTRACE_INTERRUPT, WALL = 7, 0x4206, 0x4207, 0x40000000


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_missed(interp, serve, programs):
    """A Python that ends before it could be traced is told: here another tracer has it."""
    libc = ctypes.CDLL(None, use_errno=True)
    service = serve("listen: 127.0.0.1:0\n" + rule(programs) + "scripts: { calls: { command: calls leaf, rule: mine } }\n")
    service.until(lambda found: total(found, "dtap_serve_script_up") == 1, "the script")
    missed = subprocess.Popen(interp.argv_of(PROGRAM), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              env={**os.environ, "DTAP_SERVE_TEST": programs.mark}, preexec_fn=lambda: libc.ptrace(0, 0, None, None))
    programs.children.append(missed)
    while not select.select([missed.stdout], [], [], 0.01)[0]:      # it stops at each exec and signal
        if os.waitpid(missed.pid, os.WNOHANG)[0]:
            assert libc.ptrace(PTRACE_CONT, missed.pid, None, None) == 0
    assert missed.stdout.readline() == b"ready\n"
    # Whoever is traced now was started later, and looked at later.
    child = programs.start(interp.argv_of(PROGRAM))
    traced(service, "calls", 1)
    missed.kill()
    missed.wait(harness.TIMEOUT_S)
    found = service.until(lambda found: total(found, "dtap_serve_refused_total") > 0, "what was missed")
    assert total(found, "dtap_serve_refused_total", reason="it had ended before it could be traced") == 1
    programs.end(child)
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.slow
@pytest.mark.interps("3.13")
@pytest.mark.alone
def test_hung(interp, serve, programs):
    """A service of which a thread hangs ends, and leaves no hook in the programs."""
    child = programs.start(interp.argv_of(HOOKED))
    service = serve("listen: 127.0.0.1:0\nwatchdog: 10\n" + rule(programs) + "scripts: { calls: { command: calls, rule: mine } }\n")
    traced(service, "calls", 1)
    child.stdin.write("go\n")
    child.stdin.flush()
    assert child.stdout.readline() == "True\n"
    tasks = f"/proc/{service.child.pid}/task"
    job, = (int(tid) for tid in os.listdir(tasks) if open(f"{tasks}/{tid}/comm", encoding="ascii").read() == "dtap-job\n")
    libc = ctypes.CDLL(None, use_errno=True)
    for request in PTRACE_SEIZE, PTRACE_INTERRUPT:
        assert libc.ptrace(request, job, None, None) == 0, os.strerror(ctypes.get_errno())
    assert "calls: hangs for" in service.heard("the service ends")
    while True:         # stopped, then gone
        _, status = os.waitpid(job, WALL)
        if not os.WIFSTOPPED(status):
            break
    assert service.child.wait(harness.TIMEOUT_S) == 70
    assert child.stdout.readline() == "free\n"


@pytest.mark.needs_root
def test_privileges(serve):
    """Every thread has the capabilities that the manual lists, and no others."""
    numbers = dict(re.findall(r"^#define (CAP_\w+)\s+(\d+)$", pathlib.Path("/usr/include/linux/capability.h").read_text(), re.M))
    names = re.findall(r"^PRIVILEGE\((CAP_\w+)", (harness.TOP / "src/cmd/serve/privileges.def").read_text(), re.M)
    page = (harness.TOP / "doc/man/dtap-serve.1").read_text()
    assert len(names) == 7 and all(f".Dv {name}" in page for name in names)
    own = int(re.search(r"^CapPrm:\s+(\w+)$", pathlib.Path("/proc/self/status").read_text(), re.M)[1], 16)
    mask = own & sum(1 << int(numbers[name]) for name in names)
    service = serve("listen: 127.0.0.1:0\nscripts: { none: { program: 'BEGIN { @n = count(); }' } }\n")
    service.until(lambda found: total(found, "dtap_none_n_total") == 1, "the script")
    threads = [path.read_text() for path in pathlib.Path(f"/proc/{service.child.pid}/task").glob("*/status")]
    assert len(threads) >= 3
    for status in threads:
        found = dict(re.findall(r"^(\w+):\s+(\w+)$", status, re.M))
        assert [int(found[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")] == [mask, mask, 0, 0]
        assert int(found["CapBnd"], 16) & ~mask == 0 and found["NoNewPrivs"] == "1"
    assert service.end() == 0


@pytest.mark.needs_root
def test_notify(serve, tmp_path, monkeypatch):
    """systemd hears that it is ready, that nothing hangs, and that it ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.settimeout(harness.TIMEOUT_S)
        systemd.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "100000")
        service = serve("listen: 127.0.0.1:0\nscripts: { none: { program: 'BEGIN { @n = count(); }' } }\n")
        heard = []
        while heard.count("WATCHDOG=1") < 3 or "READY=1" not in heard:
            heard.append(systemd.recv(100).decode())
        assert heard.count("READY=1") == 1 and set(heard) == {"READY=1", "WATCHDOG=1"}
        service.child.send_signal(signal.SIGTERM)
        while "STOPPING=1" not in heard:
            heard.append(systemd.recv(100).decode())
        assert service.end() == 0


# --- strangers ------------------------------------------------------------------------------------------

@pytest.mark.needs_root
@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")
def test_strangers(serve, tmp_path):
    """Elsewhere than on loopback there is nothing without TLS and the token."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    token = "0123456789abcdef0123"
    (tmp_path / "token").write_text(token + "\n")
    for name in "token", "key.pem":
        (tmp_path / name).chmod(0o600)
    service = serve(f"""listen: 0.0.0.0:0
tls: {{ certificate: {tmp_path}/cert.pem, key: {tmp_path}/key.pem }}
token_file: {tmp_path}/token
scripts: {{ none: {{ program: 'BEGIN {{ @secret = count(); }}' }} }}
""")
    tls = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    for headers in {}, {"Authorization": "Bearer " + token[:-1]}, {"Authorization": token}, {"Authorization": "Bearer " + token + "4"}:
        answer, text = service.ask(tls=tls, **headers)
        assert (answer.status, answer.getheader("WWW-Authenticate"), text) == (401, "Bearer", "a token is needed\n")
        assert service.ask("/nosuch", tls=tls, **headers)[0].status == 401
    harness.wait_until(lambda: "dtap_none_secret_total 1\n" in service.ask(tls=tls, Authorization=f"Bearer {token}")[1])
    # The server goes on as it is when nothing of it has changed.
    service.child.send_signal(signal.SIGHUP)
    service.heard("the configuration was read again")
    assert service.ask(tls=tls)[0].status == 401
    assert "dtap_none_secret_total 1\n" in service.ask(tls=tls, Authorization=f"Bearer {token}")[1]
    with pytest.raises((http.client.HTTPException, OSError)):
        service.ask(Authorization=f"Bearer {token}")        # without TLS
    assert service.end() == 0


# --- the configuration ----------------------------------------------------------------------------------

def check(tmp_path, text):
    (tmp_path / "x.yaml").write_text(text)
    return harness.run([DTAP, "serve", "--check", "-f", "x.yaml"], cwd=tmp_path)


S = "scripts: { a: { command: calls } }\n"
P = "outputs:\n  p: { folder: /x }\n  e: { file: /y }\nscripts:\n"


@pytest.mark.parametrize("text, said", [
    ("", "x.yaml:1:1: it is empty"),
    ("a: [1", "x.yaml:2:1: did not find expected ',' or ']'"),
    ("- 1\n", "x.yaml:1:1: the configuration: keys with values belong here"),
    (S + "lisen: x\n", "x.yaml:2:1: the configuration has no 'lisen', but listen, tls"),
    (S + S, "x.yaml:2:1: the configuration: 'scripts' is there twice"),
    (S + "listen: 9464\n", "x.yaml:2:9: '9464' is no ADDRESS:PORT"),
    (S + "listen: 1.2.3.4:99999\n", "x.yaml:2:9: '1.2.3.4:99999' is no ADDRESS:PORT"),
    (S + "listen: 0.0.0.0:1\n", "x.yaml:2:9: 0.0.0.0 is not on loopback, so that strangers can connect: give tls"),
    (S + "listen: none\n", "x.yaml:2:9: with \"listen: none\" there has to be a textfile or an output"),
    (S + "tls: { certificate: /etc/hostname }\n", "x.yaml:2:6: tls: name both"),
    (S + "token_file: /nosuch\n", "x.yaml:2:13: "),
    (S + "token_file: public\n", "x.yaml:2:13: public is a secret that everybody can read"),
    (S + "token_file: short\n", "x.yaml:2:13: the token has 3 characters"),
    (S + "textfile: { path: /tmp/x }\n", "x.yaml:2:11: textfile: its path ends in .prom"),
    (S + "series: many\n", "x.yaml:2:9: 'many' is no number from 1"),
    ("listen: 127.0.0.1:0\n", "x.yaml:1:1: there is nothing to run"),
    (S + "outputs: { o: { } }\n", "x.yaml:2:12: o: name one of file, pipe, http, clickhouse, pprof and folder"),
    (S + "outputs: { o: { file: /x, pipe: /y } }\n", "x.yaml:2:33: an output is one of"),
    (S + "outputs: { o: { file: x } }\n", "x.yaml:2:12: o: x is no absolute path"),
    (S + "outputs: { o: { file: /x, size: 1K } }\n", "x.yaml:2:33: '1K' is no size, such as 100M"),
    (S + "outputs: { o: { file: /x, spool: /y } }\n", "x.yaml:2:27: 'spool' is not for the output o, a file"),
    (S + "outputs: { o: { http: x } }\n", "x.yaml:2:23: 'x' is no address"),
    (S + "outputs: { o: { http: \"http://a/\", token_file: long } }\n", "x.yaml:2:12: o: the secret would go through the network"),
    (S + "outputs: { o: { clickhouse: \"http://a/\", table: a-b } }\n", "x.yaml:2:49: 'a-b' is no name of letters"),
    (S + "outputs: { o: { file: /x }, p: { file: /x } }\n", "x.yaml:2:29: p: the output o has the same file"),
    ("scripts:\n  a: { program: 'BEGIN { }', events: o }\n", "x.yaml:2:38: there is no output 'o'"),
    ("scripts:\n  a: { command: calls, fields: [a] }\n", "x.yaml:2:3: a: fields are the names of a script's values"),
    (S + "rules: { r: { user: nosuchuser } }\n", "x.yaml:2:21: there is no user 'nosuchuser'"),
    (S + "rules: { r: { pid: 1 } }\n", "x.yaml:2:15: a rule has no 'pid', but user, unit"),
    ("scripts:\n  a: { command: calls, rule: r }\n", "x.yaml:2:30: there is no rule 'r'"),
    ("scripts:\n  a-b: { command: calls }\n", "x.yaml:2:3: 'a-b' becomes part of metrics' names"),
    ("scripts:\n  a: { }\n", "x.yaml:2:3: a: name one of script"),
    ("scripts:\n  a: { command: nosuch }\n", "x.yaml:2:17: there is no such ready-made command"),
    ("scripts:\n  a: { command: flow }\n", "x.yaml:2:3: a: flow prints events: name an output"),
    ("scripts:\n  a: { command: record }\n", "x.yaml:2:3: a: record counts stacks: name an output for them (profiles)"),
    (P + "  a: { command: calls, profiles: p }\n", "x.yaml:5:3: a: calls counts no stacks"),
    (P + "  a: { command: record, profiles: e }\n", "x.yaml:5:35: the output e is for events: profiles go to one of pprof and folder"),
    (P + "  a: { program: 'BEGIN { printf(\"\"); }', events: p }\n", "x.yaml:5:50: the output p is for profiles"),
    (P + "  a: { program: 'BEGIN { @ = count(); }', profiles: p }\n", "x.yaml:5:3: a: profiles are of aggregations with a stack as a key"),
    (P + "  a: { stap: 'probe begin { }', profiles: p }\n", "x.yaml:5:3: a: profiles are of D's aggregations"),
    (S + "outputs: { o: { pprof: \"http://{host}/\" } }\n", "x.yaml:2:12: o: '{host}' is in the host, which is the same for all"),
    (S + "outputs: { o: { pprof: \"http://a/{a={b}}{pid}\" } }\n", "x.yaml:2:12: o: '{b}' is not known, but {script}, {hash}"),
    (S + "outputs: { o: { pprof: \"http://a/\", batch: 5 } }\n", "x.yaml:2:37: 'batch' is not for the output o, a pprof"),
    (S + "outputs: { o: { folder: x } }\n", "x.yaml:2:12: o: x is no absolute path"),
    (S + "outputs: { o: { folder: /x }, p: { folder: /x } }\n", "x.yaml:2:31: p: the output o has the same folder"),
    ("scripts:\n  a: { command: calls -p 1 }\n", "x.yaml:2:17: calls is not to be run like that"),
    ("scripts:\n  a: { command: calls -d 1 }\n", "x.yaml:2:17: -o, -j, -n, -i and -d are not for a service"),
    ("scripts:\n  a: { command: slow }\n", "x.yaml:2:17: slow is not to be run like that"),
    ("rules: { r: { user: 0 } }\nscripts:\n  a: { command: io, rule: r }\n", "x.yaml:3:3: a: the probes of io are in the kernel"),
    ("rules: { r: { user: 0 } }\nscripts:\n  a: { program: x, rule: r, options: { place: kernel } }\n",
     "x.yaml:3:3: a: a rule selects processes in the target place alone"),
    ("scripts:\n  a: { script: x.stp }\n", "x.yaml:2:16: x.stp: No such file or directory"),
    ("scripts:\n  a: { command: calls, metrics: { nosuch: { } } }\n", "x.yaml:2:3: calls has no value 'nosuch'"),
    ("scripts:\n  a: { command: calls, metrics: { calls: { labels: [line] } } }\n", "x.yaml:2:3: calls has no key 'line'"),
    ("scripts:\n  a: { command: calls, metrics: { calls: { labels: [le] } } }\n", "x.yaml:2:52: 'le' is no label's name"),
    ("scripts:\n  a: { command: calls, metrics: { calls: { name: a-b } } }\n", "x.yaml:2:50: 'a-b' is no metric's name"),
    ("scripts:\n  a: { command: calls, metrics: { calls: { type: sum } } }\n", "x.yaml:2:50: type is counter or gauge"),
    ("scripts:\n  a: { command: calls, metrics: { calls: { name: n } } }\n  b: { command: calls, metrics: { calls: { name: n } } }\n",
     "x.yaml:2:3: two metrics are named n"),
    ("scripts:\n  a:\n    program: |\n      BEGIN { @ = count();\n        @ = nosuch(); }\n", "x.yaml:2:3: a: "),
    ("scripts:\n  a: { program: 'BEGIN { }', options: { nosuch: 1 } }\n", "x.yaml:2:3: a: failed to set -x nosuch=1"),
], ids=lambda value: None if isinstance(value, str) and "\n" in value else re.sub(r"\W+", "-", value)[:50])
def test_mistakes(tmp_path, text, said):
    (tmp_path / "public").write_text("0123456789abcdef0123")
    (tmp_path / "public").chmod(0o644)
    (tmp_path / "long").write_text("0123456789abcdef0123")
    (tmp_path / "long").chmod(0o600)
    (tmp_path / "short").write_text("abc\n")
    (tmp_path / "short").chmod(0o600)
    result = check(tmp_path, text)
    assert result.code == 1 and result.out == "" and said in result.err, result


@pytest.mark.parametrize("words, there", [("record", False), ("record --cpu", True), ("record --sample 9", False)])
def test_option_that_names_another_script(tmp_path, words, there):
    """It is that script that runs, with its values."""
    result = check(tmp_path, f'scripts:\n  a: {{ command: "{words}", metrics: {{ cpu_at_return: {{ }} }} }}\n')
    assert ("has no value 'cpu_at_return'" in result.err) == (not there), result
    assert "name an output for them (profiles)" in result.err or not there, result


# --- labels of processes, and Prometheus ----------------------------------------------------------------

PROCESSES = """listen: 127.0.0.1:0
host: h1
labels: {{ release: RELEASE }}
{rule}scripts:
  calls: {{ command: calls leaf, rule: mine, metrics: {{ calls: {{ labels: [function, process] }} }} }}
  own:
    rule: mine
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf"/ {{ @n[pid] = count(); @line[pid] = quantize(arg2); @last[pid] = max(arg2); }}
    metrics: {{ n: {{ labels: [process] }}, line: {{ labels: [process] }}, last: {{ labels: [process] }} }}
"""


def by_release(found, name):
    return {release: total(found, name, release=release) for release in ("r1", "r2", "(other)", "")}


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_processes(interp, serve, programs, monkeypatch):
    """Processes become their labels; what those counted that have gone stays; a process counts once."""
    children = []
    for release in "r1", "r2", "r1":
        monkeypatch.setenv("RELEASE", release)
        children.append(programs.start(interp.argv_of(PROGRAM)))
    service = serve(PROCESSES.format(rule=rule(programs)))
    for script in "calls", "own":
        traced(service, script, 3)
    for i, child in enumerate(children):
        programs.tell(child, "call", 10 * (i + 1))
    found = service.metrics()
    want = {"r1": 40, "r2": 20, "(other)": 0, "": 0}
    assert by_release(found, "dtap_calls_calls_total") == by_release(found, "dtap_own_n_total") == want
    programs.end(children[2])
    traced(service, "own", 2)
    for i, child in enumerate(children[:2]):
        programs.tell(child, "call", i + 1)
    found = service.metrics()
    want |= {"r1": 41, "r2": 22}
    assert by_release(found, "dtap_calls_calls_total") == by_release(found, "dtap_own_n_total") == want
    assert by_release(found, "dtap_own_line_count") == want
    assert found[("dtap_own_last", ("unit", unit_of(children[0])), ("container", ""), ("interpreter", os.path.basename(
        os.path.realpath(f"/proc/{children[0].pid}/exe"))), ("release", "r1"))] == 3
    command = subprocess.run(["sha256sum", harness.TOP / "share/commands/calls.d"], capture_output=True, text=True, check=True)
    assert found[("dtap_serve_script_info", ("script", "calls"), ("host", "h1"), ("hash", command.stdout.split()[0]))] == 1
    for child in children[:2]:
        programs.end(child)
    assert service.end() == 0


MANY = """listen: 127.0.0.1:0
labels: {{ release: RELEASE }}
{rule}scripts:
  own:
    rule: mine
    options: {{ aggsize: 8k }}
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf"/ {{ @n[pid] = count(); @most[pid] = max(arg2); @line[pid] = quantize(arg2); }}
    metrics: {{ n: {{ {name}labels: [process] }}, most: {{ labels: [process] }}, line: {{ labels: [process] }} }}
"""


@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_processes_without_end(interp, serve, programs, monkeypatch):
    """More processes come and go than there is room for keys: what those counted that have ended is kept, not their keys; also when
    it is shown by another name from then on."""
    monkeypatch.setenv("RELEASE", "r1")
    child = programs.start(interp.argv_of(PROGRAM))
    service = serve(MANY.format(rule=rule(programs), name=""))
    traced(service, "own", 1)
    for i in range(60):
        for _ in range(5):
            programs.tell(child, "fork", 3)
        found = service.until(lambda found: total(found, "dtap_own_n_total") == programs.called, f"{programs.called} calls")
    assert total(found, "dtap_serve_lost_total") == 0, service.lines
    assert programs.called == 900
    service.child.args[3].write_text(MANY.format(rule=rule(programs), name="name: all_calls, "))
    service.child.send_signal(signal.SIGHUP)
    service.heard("the configuration was read again")
    programs.tell(child, "call", 1)
    found = service.until(lambda found: total(found, "all_calls_total") == 901, "all calls")
    assert total(found, "dtap_own_line_count") == 901 and total(found, "dtap_own_n_total") == 0
    assert {n for (name, *_), n in found.items() if name == "dtap_own_most"} == {3}
    programs.end(child)
    assert service.end() == 0


def unit_of(child):
    """Of the innermost service or scope, by its control groups."""
    with open(f"/proc/{child.pid}/cgroup", encoding="utf-8") as file:
        parts = [part for line in file for part in line.strip().split(":", 2)[2].split("/")]
    return ([""] + [part for part in parts if re.search(r".\.(service|scope)$", part)])[-1]


@pytest.mark.needs_root
@pytest.mark.slow
@pytest.mark.interps("3.13")
@pytest.mark.skipif(not shutil.which("prometheus"), reason="there is no prometheus: tools/need stores")
@pytest.mark.alone
def test_prometheus(interp, serve, programs, tmp_path):
    """A real Prometheus scrapes: its sums are what the programs counted, also over a service that was killed."""
    child = programs.start(interp.argv_of(PROGRAM))
    text = COUNTS.format(rule=rule(programs), more="")
    service = serve(text)
    traced(service, "calls", 1)
    traced(service, "lines", 1)
    port = service.address().port
    prometheus = Prometheus(tmp_path, port)
    asked, number = prometheus.asked, prometheus.number
    leaf = 'dtap_calls_calls_total{function="leaf"}'
    try:
        harness.wait_until(lambda: number("up") == 1, what="a scrape")
        programs.tell(child, "call", 100)
        harness.wait_until(lambda: number(leaf) == 100, what="100 calls")
        programs.tell(child, "fork", 50)
        harness.wait_until(lambda: number(leaf) == 150, what="150 calls")
        # Prometheus asks for OpenMetrics, where a histogram without a sum has no count.
        assert number('dtap_lines_line_bucket{key1="leaf", le="+Inf"}') == 150 and not asked("dtap_lines_line_count")
        # The service is killed; another one begins at 0, and Prometheus adds up.
        service.end(signal.SIGKILL)
        harness.wait_until(lambda: number("up") == 0, what="a failed scrape")
        service = serve(text.replace("127.0.0.1:0", f"127.0.0.1:{port}"))
        traced(service, "calls", 1)
        programs.tell(child, "call", 30)
        harness.wait_until(lambda: number(leaf) == 30, what="30 calls")
        assert number(f"resets({leaf}[5m])") == 1
        assert number(f"max_over_time({leaf}[5m])") + number(leaf) == programs.called == 180
        check = subprocess.run(["promtool", "check", "metrics"], input=service.ask()[1], capture_output=True, text=True, check=False)
        assert "error" not in check.stderr, check.stderr
    finally:
        prometheus.stop()
    programs.end(child)
    assert service.end() == 0
