"""
dtap serve for minutes: a real Prometheus and a real clickhouse-server, and Pythons that come, go, fork and crash.

Meanwhile the store is stopped, then killed, and the service is killed.  The witness is what the programs count themselves.  Under
make nightly it is ten minutes, two of them without the store; else seconds.
"""
import collections
import random
import shutil
import signal
import time

import pytest

import harness
from serve_events_test import clickhouse      # noqa: F401: a fixture
from serve_profiles_test import Profile, calls, once
from serving import PROGRAM, Prometheus, programs, rule, serve, total      # noqa: F401: serve and programs are fixtures

PYTHONS = 20
WHOLE_S, AWAY_S = (600, 120) if harness.NIGHTLY else (12, 3)

# A signal from within: SIGSEGV and SIGKILL leave no time for a last word.
CRASHING = "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n" + PROGRAM.replace(
    "    print(calls, flush=True)\n", """    print(calls, flush=True)
    if how in ("SIGSEGV", "SIGKILL"):
        import signal
        os.kill(os.getpid(), getattr(signal, how))
""")

CONFIG = """listen: 127.0.0.1:{port}
outputs:
  store: {{ clickhouse: "http://127.0.0.1:{store}", spool: {folder}/spool, interval: 0.2 }}
  folder: {{ folder: {folder}/profiles, interval: 1 }}
{rule}scripts:
  calls: {{ command: calls leaf, rule: mine }}
  events:
    rule: mine
    events: store
    fields: [function]
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf"/ {{ printf("%s", copyinstr(arg1)); }}
  stacks:
    rule: mine
    profiles: folder
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf"/ {{ @leaf[pystack()] = count(); }}
"""

SCRIPTS = ("calls", "events", "stacks")


class Churn:
    """The programs: each step one of them does something, and what ends is replaced by another, of all interpreters in turn."""

    def __init__(self, programs, interps, seed):
        self.programs, self.interps, self.rand = programs, interps, random.Random(seed)
        self.made, self.crashes, self.done = collections.Counter(), 0, collections.Counter()

    def start(self):
        interp = self.interps[sum(self.done.values()) % len(self.interps)]
        self.programs.start(interp.argv_of(CRASHING))

    def step(self):
        """True: one has ended and another was started, which is to be met before it calls anything."""
        child = self.rand.choice(self.programs.children)
        what = self.rand.choices(["call", "fork", "end", "SIGSEGV", "SIGKILL"], [60, 20, 10, 5, 5])[0]
        self.done[what] += 1
        if what == "end":
            self.programs.end(child)
            self.start()
            return True
        n = self.rand.randrange(200)
        self.programs.tell(child, what, n)
        self.made[child.pid] += n
        if what in ("call", "fork"):
            return False
        self.crashes += 1
        assert child.wait(harness.TIMEOUT_S) == -getattr(signal, what)
        child.stdin.close()
        child.stdout.close()
        self.programs.children.remove(child)
        self.start()
        return True


def met(service):
    """All programs are traced by all scripts, and no other is."""
    return service.until(lambda found: all(total(found, "dtap_serve_processes", script=script) == PYTHONS for script in SCRIPTS),
                         f"{PYTHONS} processes")


def lost(found):
    return {key: n for key, n in found.items() if key[0] == "dtap_serve_lost_total" and n}


def delivered(service, store_is_there=True):
    """Nothing of the service is in its memory alone: events are in the store or on disk."""
    def is_safe(found):
        done = total(found, "dtap_serve_output_events_total", output="store")
        return total(found, "dtap_serve_output_waiting", output="store") == 0 and (
            not store_is_there or (done == total(found, "dtap_serve_events_total") and
                                   total(found, "dtap_serve_output_spooled_bytes") == 0))
    return service.until(is_safe, "delivered events")


@pytest.mark.needs_root
@pytest.mark.alone
@pytest.mark.first
@pytest.mark.slow
@pytest.mark.dies("SIGSEGV")
@pytest.mark.skipif(not shutil.which("prometheus") or not shutil.which("clickhouse-server") or not shutil.which("protoc"),
                    reason="there is no prometheus, clickhouse-server or protoc: tools/need stores")
def test_show(serve, programs, clickhouse, tmp_path):
    interps = [harness.Interp(version, argv) for version, argv in harness.interpreters().items()
               if version in harness.VERSIONS and not isinstance(argv, str)]
    churn = Churn(programs, interps, seed=1)
    for _ in range(PYTHONS):
        churn.start()
        churn.done["start"] += 1

    def text(port):
        return CONFIG.format(port=port, store=clickhouse.port, folder=tmp_path, rule=rule(programs))
    service = serve(text(0))
    met(service)
    port = service.address().port
    prometheus = Prometheus(tmp_path, port)
    leaf = 'dtap_calls_calls_total{function="leaf"}'

    def go_on(until):
        while time.monotonic() < until:
            if churn.step():
                met(service)

    def counts(found):
        """Of one service: what Prometheus has, and the profiles and events that it has made."""
        want = total(found, "dtap_calls_calls_total", function="leaf")
        harness.wait_until(lambda: prometheus.number(leaf) == want, what=f"{want} calls in Prometheus")
        return want

    try:
        harness.wait_until(lambda: prometheus.number("up") == 1, what="a scrape")
        begun = time.monotonic()
        go_on(begun + WHOLE_S * 0.2)
        clickhouse.stop()
        go_on(time.monotonic() + AWAY_S)
        assert total(service.metrics(), "dtap_serve_output_spooled_bytes") > 0
        # All that there is is on disk or counted: what a service has that is killed in between is gone, and told as a gap.
        service.until(lambda found: total(found, "dtap_serve_output_waiting") == 0, "events on disk")
        clickhouse.start()
        go_on(begun + WHOLE_S * 0.5)
        clickhouse.stop(signal.SIGKILL)
        go_on(time.monotonic() + 2)
        clickhouse.start()
        # One whose series begins anew for sure, with less.
        steady = programs.children[0]
        programs.tell(steady, "call", 500)
        churn.made[steady.pid] += 500
        found = delivered(service)
        first = counts(found)
        assert not lost(found), (lost(found), service.lines)
        assert sum(churn.made.values()) - churn.crashes <= first <= sum(churn.made.values()), (churn.done, first)

        def profiles():
            return once([Profile(path.read_bytes()) for path in (tmp_path / "profiles").glob("*.pb.gz")])
        harness.wait_until(lambda: calls(profiles(), "stacks", "leaf") == first, what="profiles of all calls")
        service.end(signal.SIGKILL)
        harness.wait_until(lambda: prometheus.number("up") == 0, what="a failed scrape")
        service = serve(text(port))
        met(service)
        programs.tell(steady, "call", 1)
        churn.made[steady.pid] += 1
        harness.wait_until(lambda: prometheus.number(leaf) == 1, what="the first call in Prometheus")
        go_on(begun + WHOLE_S)
        found = delivered(service)
        second = counts(found)
        assert not lost(found), (lost(found), service.lines)
        made, lowest = sum(churn.made.values()), sum(churn.made.values()) - churn.crashes
        assert lowest <= first + second <= made, (churn.done, first, second)
        resets = prometheus.asked(f"resets({leaf}[1h])")
        assert 1 in {n for _, n in resets} <= {0, 1}, resets        # 0: no program of that file was told anything later
        print(f"{churn.done}: {made} calls, {first:.0f} and {second:.0f} in Prometheus, memory "
              f"{total(found, 'process_resident_memory_bytes') / 2**20:.1f} MiB")
    finally:
        prometheus.stop()
    rows = clickhouse.ask("SELECT pid, count() AS n FROM dtap.events_once WHERE script = 'events' GROUP BY pid")
    assert lowest <= sum(row["n"] for row in rows) <= made

    def gaps():
        return clickhouse.ask("SELECT run, missing FROM dtap.gaps")

    harness.wait_until(lambda: len(gaps()) == 2, what="both gaps")
    assert all(row["missing"] == 0 for row in gaps()), gaps()
    for child in list(programs.children):
        programs.end(child)
    assert service.end() == 0
    assert lowest <= calls(profiles(), "stacks", "leaf") <= made
    for interp in interps:
        interp.close()
