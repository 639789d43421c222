"""dtap serve: events.  The witness is what the traced programs count themselves."""
import collections
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

import harness
from serving import PROGRAM, programs, rule, serve, total, traced      # noqa: F401: serve and programs are fixtures
from serving import Service

SHARE = harness.TOP / "share" / "clickhouse"

CONFIG = """listen: 127.0.0.1:0
host: h1
labels: {{ release: RELEASE }}
outputs:
{outputs}
{rule}scripts:
{scripts}"""

LEAF = """  {name}:
    rule: mine
    events: {output}
    fields: [function, line]
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf"/ {{ printf("%s %d", copyinstr(arg1), arg2); }}
"""


def configured(programs, outputs, *scripts):
    return CONFIG.format(outputs="\n".join("  " + line for line in outputs), rule=rule(programs), scripts="".join(scripts))


def leaf(name, output):
    return LEAF.format(name=name, output=output)


def numbers(events):
    """{(host, boot, run): sorted numbers}"""
    found = collections.defaultdict(set)
    for event in events:
        found[event["host"], event["boot"], event["run"]].add(event["seq"])
    return {run: sorted(seqs) for run, seqs in found.items()}


def once(events):
    """Without those that came again, which are the same then."""
    found = {}
    for event in events:
        assert found.setdefault((event["host"], event["boot"], event["run"], event["seq"]), event) == event
    return list(found.values())


# --- a file and a pipe ----------------------------------------------------------------------------------

@pytest.mark.needs_root
@pytest.mark.interps("3.11", "3.14")
def test_file_and_pipe(interp, serve, programs, tmp_path):
    """Each call of the program is one line, in files that are begun anew when one is full, and in a pipe."""
    os.mkfifo(tmp_path / "pipe")
    piped = []
    reader = threading.Thread(target=lambda: piped.extend((tmp_path / "pipe").read_text().splitlines()))
    reader.start()
    child = programs.start(interp.argv_of(PROGRAM))
    service = serve(configured(programs, [f"log: {{ file: {tmp_path}/log, size: 16K, count: 50 }}",
                                          f"pipe: {{ pipe: {tmp_path}/pipe }}"],
                               leaf("filed", "log"), leaf("piped", "pipe"),
                               "  calls: { rule: mine, events: log, command: trace work }\n"))
    for script in "filed", "piped", "calls":
        traced(service, script, 1)
    programs.tell(child, "call", 100)
    programs.tell(child, "fork", 40)
    programs.end(child)
    service.until(lambda found: total(found, "dtap_serve_output_events_total", output="log") == 142 and
                  total(found, "dtap_serve_output_events_total", output="pipe") == 140, "all events")
    assert service.end() == 0
    reader.join()
    files = sorted(tmp_path.glob("log*"))
    assert len(files) > 2 and all(path.stat().st_size <= 16384 for path in files)
    events = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    seen = [event for event in events if event["script"] == "filed"]
    assert len(seen) == programs.called == 140 == len(piped)
    assert all(event["fields"] == {"function": "leaf", "line": 3} and event["text"] == "leaf 3" for event in seen)
    assert collections.Counter(event["pid"] == child.pid for event in seen) == {True: 100, False: 40}
    assert {event["host"] for event in events} == {"h1"}
    assert {event["boot"] for event in events} == {pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    # Of the child that is gone when its events come nothing is known but the number.
    assert all(re.match(r"python3", event["interpreter"]) and event["labels"] == {"release": ""} for event in events
               if event["pid"] == child.pid)
    calls = [event["fields"] for event in events if event["script"] == "calls"]
    assert sorted(call["arguments"] for call in calls) == ["n=100", "n=40"]
    assert all(call["function"] == "work" and call["end"] == "return" and call["duration"] > 0 for call in calls)
    hashes = {event["script"]: event["hash"] for event in events}
    command = subprocess.run(["sha256sum", harness.TOP / "share/commands/trace.d"], capture_output=True, text=True, check=True)
    assert hashes["calls"] == command.stdout.split()[0] != hashes["filed"]
    assert list(numbers(events).values()) == [list(range(142))]


# --- a store that fails ---------------------------------------------------------------------------------

class Store(http.server.ThreadingHTTPServer):
    """Takes events, after it has behaved as it is told: one behaviour for each request."""

    daemon_threads = True

    def __init__(self, *behaviours, tls=None, token=None, port=0):
        self.behaviours, self.token = list(behaviours), token
        self.told, self.events, self.seen, self.held = threading.Lock(), [], [], threading.Event()
        super().__init__(("127.0.0.1", port), Request)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def take(self, path, body):
        self.events += [json.loads(line) for line in body.decode().splitlines()]

    def handle_error(self, request, client_address):
        pass            # a client that goes away is what is tested

    def close(self):
        if self.held.is_set():
            return
        self.held.set()
        self.shutdown()
        self.thread.join()
        self.server_close()


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        store = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with store.told:
            how = store.behaviours.pop(0) if store.behaviours else "take"
            store.seen.append((how, self.path, dict(self.headers)))
        if store.token and self.headers["Authorization"] != "Bearer " + store.token:
            return self.answer(401, b"a token is needed")
        if how in ("take", "take and cut", "take and fail"):
            with store.told:
                store.take(self.path, body)
        if how == "take":
            self.answer(200, b"")
        elif how == "take and fail":
            self.answer(500, b"it is there, but\x1b[31m nobody knows")
        elif how == "refuse":
            self.answer(400, b"what is this?")
        elif how == "hang":
            store.held.wait(harness.TIMEOUT_S)
        elif how == "fail":
            self.answer(503, b"not now")
        self.close_connection = True


@pytest.fixture
def store():
    """store(behaviours) -> Store"""
    stores = []

    def started(*behaviours, **more):
        stores.append(Store(*behaviours, **more))
        return stores[-1]

    yield started
    for one in stores:
        one.close()


def output(name, store, spool=None, more="", scheme="http"):
    return (f"{name}: {{ http: \"{scheme}://127.0.0.1:{store.server_address[1]}/in\", batch: 20, interval: 0.05, timeout: 1" +
            (f", spool: {spool}" if spool else "") + more + " }")


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("spooled", [True, False], ids=["disk", "memory"])
def test_failing_store(interp, serve, programs, store, tmp_path, spooled):
    """It fails, cuts, hangs, and takes batches of which it does not say so: nothing is lost, and what comes twice is known."""
    one = store("fail", "take", "cut", "take", "take and cut", "take", "hang", "take", "take and fail", "take", "fail")
    child = programs.start(interp.argv_of(PROGRAM))
    service = serve(configured(programs, [output("store", one, tmp_path / "spool" if spooled else None)], leaf("a", "store")))
    traced(service, "a", 1)
    for _ in range(10):
        seen = len(one.seen)
        programs.tell(child, "call", 25)
        harness.wait_until(lambda: len(one.seen) > seen, what="a request for what was called")
    found = service.until(lambda found: total(found, "dtap_serve_output_events_total") == 250 and
                          total(found, "dtap_serve_output_spooled_bytes") == 0, "all events")
    assert total(found, "dtap_serve_output_lost_total") == total(found, "dtap_serve_lost_total") == 0
    assert total(found, "dtap_serve_output_failures_total") >= 5 and total(found, "dtap_serve_events_total", script="a") == 250
    assert total(found, "dtap_serve_output_waiting") == 0
    assert not (tmp_path / "spool").exists() or not list((tmp_path / "spool").iterdir())
    assert len(once(one.events)) == programs.called == 250 < len(one.events)
    assert list(numbers(one.events).values()) == [list(range(250))]
    assert all(headers["Content-Type"] == "application/x-ndjson" and path == "/in" for _, path, headers in one.seen)
    assert not any("\x1b" in line for line in service.lines)
    service.heard("delivers again")
    programs.end(child)
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_next_service_delivers(interp, serve, programs, store, tmp_path):
    """What a service leaves on disk is delivered by the next one; what there is no room for is told."""
    away = socket.socket()
    away.bind(("127.0.0.1", 0))         # nobody listens
    port = away.getsockname()[1]
    child = programs.start(interp.argv_of(PROGRAM))
    spool = tmp_path / "spool"
    service = serve(configured(programs, [f"store: {{ http: \"http://127.0.0.1:{port}/\", spool: {spool}, interval: 0.05 }}"],
                               leaf("a", "store")))
    traced(service, "a", 1)
    programs.tell(child, "call", 50)
    service.until(lambda found: total(found, "dtap_serve_output_spooled_bytes") > 0, "events on disk")
    programs.tell(child, "call", 30)
    service.until(lambda found: total(found, "dtap_serve_events_total") == 80, "all events")
    assert service.end() == 0
    away.close()
    assert spool.stat().st_mode & 0o777 == 0o700 and list(spool.iterdir())
    # The bound holds for what another service has left as well.
    one = store(*["fail"] * 3)
    service = serve(configured(programs, [output("store", one, spool)], leaf("a", "store")))
    service.until(lambda found: total(found, "dtap_serve_output_events_total") == 80, "all events")
    assert not list(spool.iterdir())
    assert len(one.events) == programs.called == 80 and list(numbers(one.events).values()) == [list(range(80))]
    programs.end(child)
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_bounds(interp, serve, programs, store, tmp_path):
    """A spool that is full loses the oldest, a batch that is refused is lost, and both are told."""
    one = store("refuse")
    two = store(*["fail"] * 10000)
    child = programs.start(interp.argv_of(PROGRAM))
    service = serve(configured(programs, [output("refusing", one), output("full", two, tmp_path / "spool", ", spool_size: 64K")],
                               leaf("a", "refusing"), leaf("b", "full")))
    for script in "a", "b":
        traced(service, script, 1)
    programs.tell(child, "call", 20)
    found = service.until(lambda found: total(found, "dtap_serve_output_lost_total", output="refusing") > 0, "a refused batch")
    assert "what is this?" in service.heard("events are refused")
    programs.tell(child, "call", 180)

    def whole(found):
        return (sum(total(found, f"dtap_serve_output_{name}_total", output="refusing") for name in ("events", "lost")) == 200 and
                total(found, "dtap_serve_output_lost_total", output="full") > 50)

    service.until(whole, "all events")
    assert 0 < total(service.metrics(), "dtap_serve_output_spooled_bytes", output="full") <= 65536
    two.behaviours.clear()
    found = service.until(lambda found: total(found, "dtap_serve_output_spooled_bytes", output="full") == 0 and
                          total(found, "dtap_serve_output_waiting", output="full") == 0 and
                          sum(total(found, f"dtap_serve_output_{name}_total", output="full")
                              for name in ("events", "lost")) == 200, "an empty spool")
    assert len(two.events) == total(found, "dtap_serve_output_events_total", output="full")
    assert list(numbers(two.events).values())[0][-1] == 199         # it is the oldest that is missing
    programs.end(child)
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl")
def test_secrets(serve, store, tmp_path):
    """A store with TLS and a token: its certificate is verified."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key.pem",
                    "-out", tmp_path / "cert.pem"], check=True, capture_output=True)
    (tmp_path / "token").write_text("0123456789abcdef0123\n")
    (tmp_path / "token").chmod(0o600)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    one = store(tls=tls, token="0123456789abcdef0123")
    more = f", token_file: {tmp_path}/token"
    service = serve(f"""listen: 127.0.0.1:0
outputs:
  known: {{ {output("x", one, more=more + f", ca: {tmp_path}/cert.pem", scheme="https").split("{", 1)[1]}
  unknown: {{ {output("x", one, tmp_path / "spool", more, "https").split("{", 1)[1]}
scripts:
  a: {{ program: 'BEGIN {{ printf("hello %d", 1); }}', events: known }}
  b: {{ program: 'BEGIN {{ printf("secret"); }}', events: unknown }}
""")
    service.until(lambda found: total(found, "dtap_serve_output_events_total", output="known") == 1, "the event")
    assert "certificate" in service.heard("output unknown: ")
    assert [event["text"] for event in one.events] == ["hello 1"]
    assert service.end() == 0


# --- ClickHouse -----------------------------------------------------------------------------------------

class ClickHouse:
    """A server on loopback, of Debian's package, with a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        sockets = [socket.socket() for _ in range(3)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        self.port, tcp, interserver = (one.getsockname()[1] for one in sockets)
        for one in sockets:
            one.close()
        folder.mkdir()
        (folder / "config.xml").write_text(f"""<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<listen_host>127.0.0.1</listen_host><http_port>{self.port}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{interserver}</interserver_http_port><path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<users_config>users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>5000000</mark_cache_size></yandex>""")
        (folder / "users.xml").write_text("""<yandex><profiles><default><max_threads>1</max_threads></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
</default></users><quotas><default/></quotas></yandex>""")
        self.start()

    def start(self):
        with open(self.folder / "out", "a", encoding="utf-8") as out:
            self.child = subprocess.Popen(["clickhouse-server", f"--config-file={self.folder}/config.xml"], cwd=self.folder,
                                          stdin=subprocess.DEVNULL, stdout=out, stderr=out)

        def up():
            assert self.child.poll() is None, (self.folder / "out").read_text()
            try:
                return self.ask("SELECT 1") == [{"1": 1}]
            except (urllib.error.URLError, ConnectionError):
                return False

        harness.wait_until(up, what="ClickHouse")

    def stop(self, how=signal.SIGTERM):
        self.child.send_signal(how)
        self.child.wait(harness.TIMEOUT_S)

    def tell(self, query):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", query.encode(), timeout=harness.TIMEOUT_S) as answer:
            return answer.read().decode()

    def ask(self, query):
        settings = "\nFORMAT JSONEachRow"
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/?output_format_json_quote_64bit_integers=0",
                                    (query + settings).encode(), timeout=harness.TIMEOUT_S) as answer:
            return [json.loads(line) for line in answer.read().decode().splitlines()]


def statements(path):
    """{its first comment: SQL}; comments of one statement's are those before it."""
    found = {}
    for text in re.split(r";\s*$", path.read_text(), flags=re.M):
        names = re.findall(r"^-- (.*)$", text, re.M)
        sql = re.sub(r"^--.*$", "", text, flags=re.M).strip()
        if sql:
            found[names[-1] if names else sql] = sql
    return found


@pytest.fixture
def clickhouse(tmp_path):
    if not shutil.which("clickhouse-server"):
        pytest.skip("there is no clickhouse-server: tools/need stores")
    server = ClickHouse(tmp_path / "clickhouse")
    for _ in range(2):          # it may be there already
        for sql in statements(SHARE / "schema.sql").values():
            server.tell(sql)
    yield server
    if server.child.poll() is None:
        server.stop(signal.SIGKILL)


# Calls that take as long as they are told, raises and collects, each as often as its lines of standard input say.
RELEASE = """
import gc, sys, time
gc.disable()
class Odd(Exception):
    pass
def raises():
    raise Odd
def fails():
    time.sleep(0.002)
    raise Odd
def slow():
    time.sleep(0.002)
print("ready", flush=True)
for line in sys.stdin:
    what, n = line.split()
    for i in range(int(n)):
        if what == "collect":
            gc.collect()
            continue
        try:
            globals()[what]()
        except Odd:
            pass
    print(0, flush=True)
"""

HOSTS = 10 if harness.NIGHTLY else 3


class Host:
    """A service of its own, with a program, and what the program does: before the store is killed, and while it is away."""

    def __init__(self, i):
        self.name, self.release = f"h{i}", f"r{i % 2 + 1}"
        self.before = {"slow": i % 5 + 1, "raises": 2 * (i % 3), "fails": i % 2, "collect": 3}
        self.later = {"slow": 5, "raises": 1}

    def done(self, what):
        return self.before.get(what, 0) + self.later.get(what, 0)

    @property
    def calls(self):
        """Those that take a millisecond."""
        return self.done("slow") + self.done("fails")

    @staticmethod
    def events(done):
        """An exception is told in each of two functions."""
        return sum(n * {"slow": 1, "raises": 2, "fails": 3, "collect": 1}[what] for what, n in done.items())


@pytest.mark.needs_root
@pytest.mark.slow
@pytest.mark.interps("3.13")
@pytest.mark.skipif(not shutil.which("clickhouse-server"), reason="there is no clickhouse-server: tools/need stores")
@pytest.mark.alone
def test_clickhouse(interp, serve, programs, clickhouse, tmp_path, monkeypatch):
    """Hosts, two releases, a store that is killed meanwhile: the ten queries' answers are the truth."""
    base = (SHARE / "serve.yaml").read_text()
    assert "http://127.0.0.1:8123" in base and "/var/lib/dtap/store" in base
    hosts = [Host(i) for i in range(HOSTS)]
    for host in hosts:
        mark = f"{programs.mark}.{host.name}"
        config = tmp_path / f"{host.name}.yaml"
        text = base.replace("8123", str(clickhouse.port))
        text = text.replace("/var/lib/dtap/store", f"{tmp_path}/spool.{host.name}\n    interval: 0.1")
        text = text.replace("    events: store", "    events: store\n    rule: mine")
        text = text.replace("__main__.*", "slow fails")     # any other can take a millisecond on a busy machine
        config.write_text(f"listen: 127.0.0.1:0\nhost: {host.name}\n"
                          f"rules: {{ mine: {{ environment: {{ RELEASE_TEST: \"{mark}\" }} }} }}\n" + text)
        monkeypatch.setenv("RELEASE_TEST", mark)
        monkeypatch.setenv("RELEASE", host.release)
        host.child = programs.start(interp.argv_of(RELEASE))
        host.service = Service(config)
    try:
        for host in hosts:
            for script in "calls", "exceptions", "pauses":
                traced(host.service, script, 1)
            do(programs, host.child, host.before)
        for host in hosts:
            n = host.events(host.before)
            host.service.until(lambda found, n=n: total(found, "dtap_serve_output_events_total") == n, f"{n} events")
        clickhouse.stop(signal.SIGKILL)
        for host in hosts:
            do(programs, host.child, host.later)
        for host in hosts:
            host.service.until(lambda found: total(found, "dtap_serve_output_spooled_bytes") > 0, "events on disk")
        clickhouse.start()
        for host in hosts:
            n = host.events(host.before) + host.events(host.later)
            host.service.until(lambda found, n=n: total(found, "dtap_serve_output_events_total") == n, f"{n} events")
    finally:
        for host in hosts:
            assert host.service.end() == 0
    # A batch that comes again changes nothing, in the materialised views neither.
    clickhouse.tell("SYSTEM STOP MERGES")       # of which one would take the copies away before they are seen
    clickhouse.tell("INSERT INTO dtap.events SELECT * FROM dtap.events")
    events = {host.name: host.events(host.before) + host.events(host.later) for host in hosts}
    assert clickhouse.ask("SELECT count() AS n FROM dtap.events")[0]["n"] > sum(events.values())
    answers = {name: clickhouse.ask(sql) for name, sql in statements(SHARE / "queries.sql").items()}
    assert len(answers) == 10

    def sums(key, *what):
        """{a host's key: what all hosts of that key have done}, without those that have done nothing"""
        found = collections.Counter()
        for host in hosts:
            found[getattr(host, key)] += sum(map(host.done, what))
        return +found

    slow = answers["slowest functions by release"]
    assert {row["release"]: row["calls"] for row in slow if row["function"] == "slow"} == sums("release", "slow")
    assert {row["release"]: row["calls"] for row in slow if row["function"] == "fails"} == sums("release", "fails")
    assert {row["function"] for row in slow} == {"slow", "fails"}
    assert all(row["p99_ms"] >= 2 and row["total_s"] >= 0.002 * row["calls"] for row in slow)
    medians = answers["functions that became slower from one release to the next"]
    assert {(row["function"], row["release"]) for row in medians} == {("slow", "r1"), ("slow", "r2"), ("fails", "r2")}
    assert all(row["median_ms"] >= 2 for row in medians)
    assert {row["host"]: row["calls"] for row in answers["slow calls by host"]} == sums("name", "slow", "fails")
    places = answers["exceptions by place"]
    raised, failed = sum(host.done("raises") for host in hosts), sum(host.done("fails") for host in hosts)
    assert {(row["function"], row["type"]): row["times"] for row in places} == {
        ("raises", "Odd"): raised, ("fails", "Odd"): failed, ("<module>", "Odd"): raised + failed}
    assert {row["release"]: row["times"] for row in answers["exceptions by release"]} == {
        release: 2 * n for release, n in sums("release", "raises", "fails").items()}
    ended = answers["calls that ended by an exception, by function"]
    assert [(row["function"], row["raised"], row["calls"]) for row in ended] == [("fails", failed, failed)]
    collected = answers["garbage collections by host"]
    assert {(row["host"], row["generation"], row["pauses"]) for row in collected} == {(host.name, 2, 3) for host in hosts}
    assert all(0 < row["longest_ms"] <= row["total_ms"] for row in collected)
    pauses = answers["longest pauses by unit and process"]
    assert {row["host"]: row["pid"] for row in pauses} == {host.name: host.child.pid for host in hosts}
    told = collections.Counter()
    for row in answers["events by script, host and minute"]:
        told[row["host"], row["script"]] += row["events"]
    assert told == {(host.name, script): n for host in hosts for script, n in {
        "calls": host.calls, "exceptions": 2 * (host.done("raises") + host.done("fails")), "pauses": 3}.items()}
    assert [(row["host"], row["missing"]) for row in answers["what was lost"]] == [(host.name, 0) for host in hosts]


def do(programs, child, what):
    for how, n in what.items():
        programs.tell(child, how, n)
