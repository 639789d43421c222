"""dtap serve: profiles.  protoc decodes them, and the witness is what the traced programs count themselves."""
import collections
import gzip
import pathlib
import shutil
import signal
import socket
import urllib.parse

import pytest

import harness
from commands_test import decoded
from serve_events_test import Store, store      # noqa: F401: store is a fixture
from serving import PROGRAM, programs, rule, serve, total, traced      # noqa: F401: serve and programs are fixtures

pytestmark = [pytest.mark.needs_root, pytest.mark.skipif(not shutil.which("protoc"), reason="protoc is not installed")]

CONFIG = """listen: 127.0.0.1:0
host: h1
labels: {{ release: RELEASE }}
outputs:
  store: {output}
{rule}scripts:
  tree: {{ command: record, rule: mine, profiles: store }}
  own:
    rule: mine
    profiles: store
    program: |
      python*:::function-entry /copyinstr(arg1) == "leaf"/
      {{ @leaf[pid, pystack()] = count(); @lines[pid, pystack()] = sum(arg2); @plain = count(); }}
    metrics: {{ leaf: {{ labels: [process] }}, lines: {{ labels: [process], unit: lines }} }}
"""

ADDRESS = ("http://127.0.0.1:{port}/ingest?name={{script}}.{{type}}{{host={{host}},release={{release}}}}&from={{from}}&until={{until}}"
           "&format=pprof&run={{run}}&number={{number}}")


class Profile:
    """A profile as protoc reads it: {name of the values: {stack of functions: number}}, and its comments by name."""

    def __init__(self, data):
        one = decoded(gzip.decompress(data), "Profile")
        texts = one["string_table"]
        functions = {f["id"][0]: texts[int(f["name"][0])] for f in one.get("function", [])}
        locations = {at["id"][0]: functions[at["line"][0]["function_id"][0]] for at in one.get("location", [])}
        self.types = [(texts[int(t["type"][0])], texts[int(t["unit"][0])]) for t in one["sample_type"]]
        self.values = {name: collections.Counter() for name, _ in self.types}
        for sample in one.get("sample", []):
            stack = ";".join(locations[at] for at in reversed(sample["location_id"]))
            for (name, _), value in zip(self.types, sample["value"]):
                self.values[name][stack] += int(value)
        self.about = dict(texts[int(n)].split("=", 1) for n in one["comment"])
        self.from_ns, self.ns = int(one["time_nanos"][0]), int(one["duration_nanos"][0])

    def name(self):
        return self.about["run"], int(self.about["number"])


class Profiles(Store):
    """Takes one profile with each request, after it has behaved as it is told."""

    def take(self, path, body):
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query, keep_blank_values=True))
        self.events.append((asked, Profile(body)))


@pytest.fixture
def profiles():
    """profiles(behaviours) -> Profiles"""
    stores = []

    def started(*behaviours, **more):
        stores.append(Profiles(*behaviours, **more))
        return stores[-1]

    yield started
    for one in stores:
        one.close()


def once(taken):
    """Without those that came again, which are the same then.  Of a run no number is missing."""
    found = {}
    for profile in taken:
        assert found.setdefault(profile.name(), profile).values == profile.values
    runs = collections.defaultdict(list)
    for run, number in sorted(found):
        runs[run].append(number)
    assert all(numbers == list(range(len(numbers))) for numbers in runs.values()), runs
    return list(found.values())


def calls(taken, script, values, function="leaf"):
    return sum(n for profile in taken if profile.about["script"] == script
               for stack, n in profile.values.get(values, {}).items() if stack.split(";")[-1] == function)


def follow_each_other(taken):
    """Each profile of the same begins where the one before ended, or later if there was nothing to tell."""
    last = {}
    for profile in sorted(taken, key=lambda p: p.from_ns):
        at = tuple(value for name, value in profile.about.items() if name not in ("from", "until", "number"))
        assert last.get(at, 0) <= profile.from_ns, profile.about
        last[at] = profile.from_ns + profile.ns
        assert int(profile.about["from"]) == profile.from_ns // 10**9
        assert int(profile.about["until"]) == (profile.from_ns + profile.ns) // 10**9


@pytest.mark.interps("3.11", "3.13")
@pytest.mark.parametrize("spooled", [True, False], ids=["disk", "memory"])
def test_failing_store(interp, serve, programs, profiles, tmp_path, spooled):
    """It fails, cuts, takes without saying so, dies and comes back: all profiles together are what was called."""
    one = profiles("fail", "take", "cut", "take", "take and cut", "take", "hang", "take", "take and fail", "take", "fail")
    port = one.server_address[1]
    child = programs.start(interp.argv_of(PROGRAM))
    output = (f'{{ pprof: "{ADDRESS.format(port=port)}", interval: 0.1, timeout: 1' +
              (f", spool: {tmp_path}/spool" if spooled else "") + " }")
    service = serve(CONFIG.format(output=output, rule=rule(programs)))
    traced(service, "own", 1)
    traced(service, "tree", 1)
    for _ in range(10):
        given = total(service.metrics(), "dtap_serve_profiles_total")
        programs.tell(child, "call", 25)
        service.until(lambda found: total(found, "dtap_serve_profiles_total") > given, "a period more")
    service.until(lambda found: total(found, "dtap_serve_output_events_total") == total(found, "dtap_serve_profiles_total"), "all")
    one.close()
    failures = total(service.metrics(), "dtap_serve_output_failures_total")
    programs.tell(child, "fork", 40)
    programs.tell(child, "call", 7)
    service.until(lambda found: total(found, "dtap_serve_output_failures_total") > failures and
                  (not spooled or total(found, "dtap_serve_output_spooled_bytes") > 0), "the store to be missed")
    two = profiles(port=port)
    programs.tell(child, "call", 5)
    service.until(lambda found: total(found, "dtap_serve_output_up") == 1 and two.events, "the store to be there again")
    programs.end(child)
    found = service.metrics()
    assert total(found, "dtap_serve_output_lost_total") == total(found, "dtap_serve_lost_total") == 0
    assert total(found, "dtap_own_plain_total") == programs.called == 302
    assert not any("leaf" in name or "lines" in name or "tree" in name for name, *_ in found)
    assert service.end() == 0
    asked, taken = zip(*one.events, *two.events)
    assert len(once(taken)) < len(taken)
    taken = once(taken)
    assert calls(taken, "own", "leaf") == calls(taken, "tree", "calls") == 302
    assert calls(taken, "own", "lines") == 3 * 302
    assert calls(taken, "tree", "calls", "work") == 13
    assert {tuple(p.types) for p in taken} == {(("leaf", "count"),), (("lines", "lines"),),
                                                (("calls", "count"), ("wall", "nanoseconds"))}
    assert all(stack.endswith("work;leaf") for p in taken if p.about["script"] == "own" for v in p.values.values() for stack in v)
    follow_each_other(taken)
    for at, profile in zip(asked, taken):
        assert at["format"] == "pprof" and set(at) == {"name", "from", "until", "format", "run", "number"}
    assert {at["name"] for at in asked} == {f"{name}{{host=h1,release=}}" for name in ("tree.", "own.leaf", "own.lines")}
    assert all(headers["Content-Type"] == "application/octet-stream" for _, _, headers in one.seen)


@pytest.mark.interps("3.13")
def test_folder(interp, serve, programs, tmp_path, monkeypatch):
    """Files, a set of labels each; a reload changes where they go, a killed service what is counted from then on alone."""
    children = []
    for release in "r1", "r2", "r1":
        monkeypatch.setenv("RELEASE", release)
        children.append(programs.start(interp.argv_of(PROGRAM)))
    text = CONFIG.format(output=f"{{ folder: {tmp_path}/a, interval: 0.1 }}", rule=rule(programs))
    service = serve(text)
    traced(service, "own", 3)
    traced(service, "tree", 3)
    for i, child in enumerate(children):
        programs.tell(child, "call", 10 ** i)
    programs.end(children[2])
    traced(service, "own", 2)
    service.child.args[3].write_text(text.replace(f"{tmp_path}/a", f"{tmp_path}/b"))
    service.child.send_signal(signal.SIGHUP)
    service.heard("the configuration was read again")
    for i, child in enumerate(children[:2]):
        programs.tell(child, "call", i + 1)
    assert service.end() == 0

    def read(*folders):
        files = [path for folder in folders for path in (tmp_path / folder).glob("*.pb.gz")]
        assert all(path.stat().st_mode & 0o777 == 0o640 for path in files)
        return once([Profile(path.read_bytes()) for path in files])
    taken = read("a", "b")
    for script, values in ("own", "leaf"), ("tree", "calls"):
        for release, n in ("r1", 101 + 1), ("r2", 10 + 2):
            assert calls([p for p in taken if p.about["release"] == release], script, values) == n
    assert {p.about["host"] for p in taken} == {"h1"} and {p.about["release"] for p in taken} == {"r1", "r2"}
    follow_each_other(taken)
    # What a killed service had not delivered is lost; the next one begins at 0.
    service = serve(text.replace(f"{tmp_path}/a", f"{tmp_path}/c"))
    traced(service, "own", 2)
    programs.tell(children[0], "call", 50)
    harness.wait_until(lambda: (tmp_path / "c").exists() and calls(read("c"), "own", "leaf") == 50, what="50 calls")
    service.end(signal.SIGKILL)
    service = serve(text.replace(f"{tmp_path}/a", f"{tmp_path}/d"))
    traced(service, "own", 2)
    programs.tell(children[1], "call", 60)
    assert service.end() == 0
    assert calls(read("d"), "own", "leaf") == 60
    for child in children[:2]:
        programs.end(child)


@pytest.mark.interps("3.13")
def test_bounds(interp, serve, programs, tmp_path):
    """A folder keeps the newest profiles; one that others can write to is refused, and nothing in it is touched."""
    (tmp_path / "a").mkdir(0o755)
    (tmp_path / "a" / "note").write_text("x" * 100000)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    child = programs.start(interp.argv_of(PROGRAM))
    text = CONFIG.format(output=f"{{ folder: {tmp_path}/a, interval: 0.05, size: 4K }}", rule=rule(programs))
    service = serve(text)
    traced(service, "own", 1)
    traced(service, "tree", 1)
    for _ in range(20):
        given = total(service.metrics(), "dtap_serve_profiles_total")
        programs.tell(child, "call", 10)
        service.until(lambda found: total(found, "dtap_serve_profiles_total") > given, "a period more")
    service.child.args[3].write_text(text.replace(f"{tmp_path}/a", f"{tmp_path}/open"))
    service.child.send_signal(signal.SIGHUP)
    service.heard("the folder for profiles is not the service's own, or others can write to it")
    programs.end(child)
    assert service.end() == 0
    files = list((tmp_path / "a").glob("*.pb.gz"))
    assert files and sum(path.stat().st_size for path in files) <= 4096 and (tmp_path / "a" / "note").stat().st_size == 100000
    # Two may have been written in one tick of the kernel's clock for files.
    kept = sorted((Profile(path.read_bytes()).name()[1], path.stat().st_mtime_ns) for path in files)
    numbers, times = [number for number, _ in kept], [time for _, time in kept]
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[0] > 0 and times == sorted(times)
    assert not list((tmp_path / "open").iterdir())
