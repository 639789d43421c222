"""What tests of `dtap serve` share: a service that is asked, and programs that count what they do themselves."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

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

    def __init__(self, config, *options, wrapper=()):
        self.lines, self.late = [], 0
        self.child = subprocess.Popen([*wrapper, DTAP, "serve", "-f", config, *options], stdin=subprocess.DEVNULL,
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


class Prometheus:
    """A server on loopback, of Debian's package, that scrapes one port of this machine."""

    def __init__(self, folder, port):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / "prometheus.log"
        (folder / "prometheus.yml").write_text(f"""global: {{ scrape_interval: 200ms, scrape_timeout: 200ms }}
scrape_configs:
  - job_name: dtap
    static_configs: [{{ targets: ["127.0.0.1:{port}"] }}]
""")
        with open(self.log, "w", encoding="utf-8") as log:
            self.child = subprocess.Popen(["prometheus", f"--config.file={folder}/prometheus.yml",
                                           f"--storage.tsdb.path={folder}/tsdb",
                                           f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def asked(self, query):
        """[(labels, number)]; nothing while it starts."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?" + urllib.parse.urlencode({"query": query}),
                                        timeout=harness.TIMEOUT_S) as answer:
                return [(row["metric"], float(row["value"][1])) for row in json.load(answer)["data"]["result"]]
        except urllib.error.URLError:
            assert self.child.poll() is None, self.log.read_text()
            return []

    def number(self, query):
        return sum(n for _, n in self.asked(query))

    def stop(self):
        self.child.terminate()
        self.child.wait(harness.TIMEOUT_S)


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
