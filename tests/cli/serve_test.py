"""dtap serve.  The witness is what the traced programs count themselves."""
import http.client
import os
import re
import shutil
import signal
import ssl
import subprocess
import threading
import urllib.parse

import pytest

import harness

DTAP = harness.BUILD / "dtap"

# Forks and calls as it is told, and says what it has called.  Nothing of its own is called meanwhile but work() and leaf().
PROGRAM = """
import os, sys
def leaf(n):
    pass
def work(n):
    for i in range(n):
        leaf(i)
def child(n):
    work(n)
    os._exit(0)
print("ready", flush=True)
calls = 0
for line in sys.stdin:
    how, n = line.split()
    n = int(n)
    if how == "fork":
        pid = os.fork()
        if not pid:
            child(n)
        os.waitpid(pid, 0)
    else:
        work(n)
    calls += n
    print(calls, flush=True)
"""


class Service:
    """A dtap serve that has said where its metrics are."""

    def __init__(self, config, *options):
        self.lines, self.late = [], 0
        self.child = subprocess.Popen([DTAP, "serve", "-f", config, *options], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.told = threading.Condition()
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        for line in self.child.stderr:
            with self.told:
                self.lines.append(line)
                self.told.notify_all()
        with self.told:
            self.lines.append("")
            self.told.notify_all()

    def heard(self, words, times=1):
        """The last line with these words; it must come that often."""
        with self.told:
            assert self.told.wait_for(lambda: sum(words in line for line in self.lines) >= times or "" in self.lines,
                                      harness.TIMEOUT_S), self.lines
            found = [line for line in self.lines if words in line]
            assert len(found) >= times, self.lines
            return found[-1]

    def address(self):
        return urllib.parse.urlsplit(re.search(r"https?://\S+", self.heard("metrics at"))[0])

    def ask(self, path="/metrics", tls=None, method="GET", **headers):
        to = self.address()
        kind = http.client.HTTPSConnection if tls else http.client.HTTPConnection
        connection = kind("127.0.0.1", to.port, timeout=harness.TIMEOUT_S, **({"context": tls} if tls else {}))
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    def asked(self, words, **headers):
        """None if the words are not there yet."""
        answer, text = self.ask(**headers)
        return (answer, text) if words in text else None

    def metrics(self):
        """A reading that is of now."""
        def reading():
            answer, text = self.ask()
            assert answer.status == 200, text
            found = parsed(text)
            late, self.late = self.late, total(found, "dtap_serve_late_total")
            return found if self.late == late else None
        return harness.wait_until(reading, what="a reading in time")

    def until(self, condition, what):
        """The first reading for which the condition holds."""
        def reading():
            found = self.metrics()
            return found if condition(found) else None
        try:
            return harness.wait_until(reading, what=what)
        except AssertionError:
            raise AssertionError(f"{what}: {self.lines}\n{self.ask()[1]}")

    def end(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        code = self.child.wait(harness.TIMEOUT_S)
        self.reader.join()
        self.child.stderr.close()
        assert not harness.SANITIZER_REPORT.search("".join(self.lines)), "".join(self.lines)
        return code


SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def parsed(text):
    """{(name, (label, value) ...): number}; no sample twice, all of a metric together behind its type (exposition formats)."""
    found, types, last, done = {}, {}, None, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, types[name] = line.split()
            assert name not in done, line
            done.add(name)
            last = name
        elif not line.startswith("#"):
            name, labels, number = SAMPLE.fullmatch(line).groups()
            assert name.startswith(last), line
            at = [(key, value) for key, value in LABEL.findall(labels or "")]
            key = (name, *at)
            assert key not in found, line
            found[key] = float(number)
    return found


def total(found, name, **labels):
    """The sum over all series of a metric that have these labels."""
    return sum(n for (metric, *at), n in found.items() if metric == name and labels.items() <= dict(at).items())


@pytest.fixture
def serve(tmp_path):
    """serve(config, text of the configuration) -> Service; the configuration is for programs of this test alone."""
    services = []

    def started(text, *options):
        config = tmp_path / "serve.yaml"
        config.write_text(text)
        services.append(Service(config, *options))
        return services[-1]

    yield started
    for service in services:
        if service.child.poll() is None:
            service.end()


class Programs:
    """Programs of a test, told apart from all others by a variable of their environment."""

    def __init__(self, mark):
        self.mark, self.children, self.called = mark, [], 0

    def start(self, argv, **kwargs):
        child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "DTAP_SERVE_TEST": self.mark}, **kwargs)
        self.children.append(child)
        assert child.stdout.readline() == "ready\n"
        return child

    def tell(self, child, how, n):
        child.stdin.write(f"{how} {n}\n")
        child.stdin.flush()
        assert child.stdout.readline().strip().isdigit()
        self.called += n

    def end(self, child):
        child.stdin.close()
        child.stdout.close()
        assert child.wait(harness.TIMEOUT_S) == 0
        self.children.remove(child)


@pytest.fixture
def programs(tmp_path):
    programs = Programs(str(tmp_path))
    yield programs
    for child in programs.children:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def rule(programs):
    return f'rules: {{ mine: {{ environment: {{ DTAP_SERVE_TEST: "{programs.mark}" }} }} }}\n'


def traced(service, script, n):
    return service.until(lambda found: total(found, "dtap_serve_processes", script=script) == n, f"{n} processes of {script}")


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
@pytest.mark.in_turn
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
def test_killed(interp, serve, programs):
    """A service that is killed leaves no hook in the programs."""
    child = programs.start(interp.argv_of(HOOKED))
    service = serve("listen: 127.0.0.1:0\n" + rule(programs) + "scripts: { calls: { command: calls, rule: mine } }\n")
    traced(service, "calls", 1)
    child.stdin.write("go\n")
    child.stdin.flush()
    assert child.stdout.readline() == "True\n"
    assert service.end(signal.SIGKILL) == -signal.SIGKILL
    assert child.stdout.readline() == "free\n"


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


@pytest.mark.parametrize("text, said", [
    ("", "x.yaml:1:1: it is empty"),
    ("a: [1", "x.yaml:2:1: did not find expected ',' or ']'"),
    ("- 1\n", "x.yaml:1:1: the configuration: keys with values belong here"),
    (S + "lisen: x\n", "x.yaml:2:1: the configuration has no 'lisen', but listen, tls"),
    (S + S, "x.yaml:2:1: the configuration: 'scripts' is there twice"),
    (S + "listen: 9464\n", "x.yaml:2:9: '9464' is no ADDRESS:PORT"),
    (S + "listen: 1.2.3.4:99999\n", "x.yaml:2:9: '1.2.3.4:99999' is no ADDRESS:PORT"),
    (S + "listen: 0.0.0.0:1\n", "x.yaml:2:9: 0.0.0.0 is not on loopback, so that strangers can connect: give tls"),
    (S + "listen: none\n", "x.yaml:2:9: with \"listen: none\" there has to be a textfile"),
    (S + "tls: { certificate: /etc/hostname }\n", "x.yaml:2:6: tls: name both"),
    (S + "token_file: /nosuch\n", "x.yaml:2:13: "),
    (S + "token_file: public\n", "x.yaml:2:13: public is a secret that everybody can read"),
    (S + "token_file: short\n", "x.yaml:2:13: the token has 3 characters"),
    (S + "textfile: { path: /tmp/x }\n", "x.yaml:2:11: textfile: its path ends in .prom"),
    (S + "series: many\n", "x.yaml:2:9: 'many' is no number from 1"),
    ("listen: 127.0.0.1:0\n", "x.yaml:1:1: there is nothing to run"),
    (S + "rules: { r: { user: nosuchuser } }\n", "x.yaml:2:21: there is no user 'nosuchuser'"),
    (S + "rules: { r: { pid: 1 } }\n", "x.yaml:2:15: a rule has no 'pid', but user, unit"),
    ("scripts:\n  a: { command: calls, rule: r }\n", "x.yaml:2:30: there is no rule 'r'"),
    ("scripts:\n  a-b: { command: calls }\n", "x.yaml:2:3: 'a-b' becomes part of metrics' names"),
    ("scripts:\n  a: { }\n", "x.yaml:2:3: a: name one of script"),
    ("scripts:\n  a: { command: nosuch }\n", "x.yaml:2:17: there is no such ready-made command"),
    ("scripts:\n  a: { command: flow }\n", "x.yaml:2:17: flow prints events"),
    ("scripts:\n  a: { command: record }\n", "x.yaml:2:17: record prints a tree of calls"),
    ("scripts:\n  a: { command: calls -p 1 }\n", "x.yaml:2:17: calls is not to be run like that"),
    ("scripts:\n  a: { command: calls -d 1 }\n", "x.yaml:2:17: -o, -j, -n, -i and -d are not for a service"),
    ("scripts:\n  a: { command: slow }\n", "x.yaml:2:17: slow is not to be run like that"),
    ("rules: { r: { user: 0 } }\nscripts:\n  a: { command: io, rule: r }\n", "x.yaml:3:3: a: the probes of io are in the kernel"),
    ("rules: { r: { user: 0 } }\nscripts:\n  a: { program: x, rule: r, options: { place: kernel } }\n",
     "x.yaml:3:3: a: a rule selects processes in the target place alone"),
    ("scripts:\n  a: { script: x.stp }\n", "x.yaml:2:16: x.stp is SystemTap's"),
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
    (tmp_path / "short").write_text("abc\n")
    (tmp_path / "short").chmod(0o600)
    result = check(tmp_path, text)
    assert result.code == 1 and result.out == "" and said in result.err, result
