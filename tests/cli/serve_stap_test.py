"""dtap serve with SystemTap scripts.  The witness is what the traced program counts itself."""
import pathlib
import re
import shutil
import subprocess

import pytest

import harness
from serving import DTAP, PROGRAM, Programs, parsed, programs, rule, serve, total, traced      # noqa: F401: serve and programs are fixtures

SCRIPT = """global calls, lines, whole, last, deep, flat, words, many
probe process("@PATH@").mark("function__entry") {
  name = user_string($arg2)
  if (name == "leaf" || name == "work") {
    calls[name]++
    lines[name] <<< $arg3
    deep <<< $arg3
    flat[name] <<< $arg3
    words[name] = name
    whole += 2
    last = $arg3
    if (name == "leaf")
      many[whole] = whole
  }
}
probe end { print(@hist_log(deep)); println(@hist_linear(flat["leaf"], 0, 10, 2)) }
"""
LINES = {"leaf": 3, "work": 5}      # in PROGRAM


def own_python(tmp_path):
    """A program that nobody else runs."""
    path = tmp_path / "python3"
    shutil.copy(pathlib.Path("/usr/bin/python3").resolve(), path)
    return path


def buckets(found, metric, *at):
    return {dict(key)["le"]: n for (name, *key), n in found.items() if name == metric + "_bucket" and set(at) <= set(key)}


@pytest.mark.needs_root
@pytest.mark.needs_bpf
@pytest.mark.interps("3.11")
@pytest.mark.parametrize("place", ["target", "kernel"])
def test_globals(interp, serve, programs, tmp_path, place):
    """Numbers, arrays and statistics while the script runs; arrays of more elements than a handler may have statements."""
    path = own_python(tmp_path)
    script = tmp_path / "counts.stp"
    script.write_text(SCRIPT.replace("@PATH@", str(path)))
    service = serve(f"""listen: 127.0.0.1:0
series: 5000
scripts:
  s:
    script: {script}
    options: {{ place: {place} }}
    metrics:
      lines: {{ name: lines_of, labels: [function] }}
      whole: {{ type: gauge }}
""")
    service.until(lambda found: total(found, "dtap_serve_script_up", script="s") == 1, "the script")
    child = programs.start([path, "-c", PROGRAM])
    service.until(lambda found: total(found, "dtap_serve_processes", script="s") == 1, "the program")
    leaf = work = 0
    for n in 100, 1700, 7:
        programs.tell(child, "call", n)
        leaf, work = leaf + n, work + 1
        found = service.until(lambda found: total(found, "dtap_s_calls_total") >= leaf + work, "all calls")
        assert found[("dtap_s_calls_total", ("key1", "leaf"))] == leaf == programs.called
        assert found[("dtap_s_calls_total", ("key1", "work"))] == work
        assert found[("dtap_s_whole",)] == 2 * (leaf + work)
        assert found[("dtap_s_last",)] == LINES["leaf"]
        for name, count in ("leaf", leaf), ("work", work):
            assert found[("lines_of_count", ("function", name))] == count
            assert found[("lines_of_sum", ("function", name))] == count * LINES[name]
            at = buckets(found, "dtap_s_flat", ("key1", name))
            assert at.pop("+Inf") == count
            assert at and all(seen == (count if float(le) >= LINES[name] else 0) for le, seen in at.items()), at
        at = buckets(found, "dtap_s_deep")
        assert at.pop("+Inf") == leaf + work and {"3.0", "7.0"} <= set(at)
        assert at == {le: sum(count for name, count in (("leaf", leaf), ("work", work)) if LINES[name] <= float(le)) for le in at}
        assert found[("dtap_s_deep_sum",)] == leaf * LINES["leaf"] + work * LINES["work"]
        assert found[("dtap_s_flat_sum", ("key1", "work"))] == work * LINES["work"]
        assert len([1 for name, *_ in found if name == "dtap_s_many"]) == leaf
        assert not any("words" in name for name, *_ in found)
    text = service.ask()[1]
    for name, kind in ("calls_total", "counter"), ("whole", "gauge"), ("last", "gauge"), ("deep", "histogram"):
        assert f"# TYPE dtap_s_{name} {kind}\n" in text
    assert "# TYPE lines_of summary\n" in text
    assert total(found, "dtap_serve_lost_total") == 0
    programs.end(child)
    assert service.end() == 0


RULED = """listen: 127.0.0.1:0
labels: {{ release: RELEASE }}
{rule}scripts:
  s:
    rule: mine
    metrics: {{ calls: {{ labels: [process] }} }}
    stap: |
      global calls, sizes
      probe process("{path}").mark("function__entry") {{
        if (user_string($arg2) == "leaf") {{
          calls[pid()]++
          sizes <<< $arg3
        }}
      }}
"""


@pytest.mark.needs_root
def test_rule(serve, programs, tmp_path, monkeypatch):
    """Of the processes that run the program those that the rule selects, and what they fork; the others are left alone."""
    path = own_python(tmp_path)
    strangers = Programs("another")

    def untouched(child):
        return "dtap" not in pathlib.Path(f"/proc/{child.pid}/maps").read_text()
    try:
        monkeypatch.setenv("RELEASE", "r1")
        early = [programs.start([path, "-c", PROGRAM]), strangers.start([path, "-c", PROGRAM])]
        service = serve(RULED.format(rule=rule(programs), path=path))
        traced(service, "s", 1)
        monkeypatch.setenv("RELEASE", "r2")
        late = [strangers.start([path, "-c", PROGRAM]), programs.start([path, "-c", PROGRAM])]
        traced(service, "s", 2)
        for child in early[1], late[0]:
            strangers.tell(child, "call", 1000)
        programs.tell(early[0], "call", 10)
        programs.tell(early[0], "fork", 20)
        programs.tell(late[1], "call", 5)
        found = service.until(lambda found: total(found, "dtap_s_calls_total") >= 35, "all calls")
        assert total(found, "dtap_s_calls_total", release="r1") in (10, 30)      # the child may be gone before anybody could look
        assert total(found, "dtap_s_calls_total", release="r2") == 5
        assert total(found, "dtap_s_calls_total") == programs.called == found[("dtap_s_sizes_count",)] == 35
        assert total(found, "dtap_serve_processes") == 2 and total(found, "dtap_serve_lost_total") == 0
        assert untouched(early[1]) and untouched(late[0]) and not untouched(early[0])
        for child in early[0], late[1]:
            programs.end(child)
        assert service.end() == 0
    finally:
        for child in strangers.children[:]:
            strangers.end(child)


@pytest.mark.needs_root
@pytest.mark.needs_bpf
def test_end(serve):
    """What a script that has ended itself has counted stays."""
    service = serve("""listen: 127.0.0.1:0
scripts:
  s:
    stap: |
      global n, t
      probe timer.ms(10) { n++; t <<< n; if (n == 7) exit() }
""")
    service.heard("s: has ended")
    found = service.metrics()
    assert found[("dtap_s_n_total",)] == 7
    assert found[("dtap_s_t_count",)] == 7 and found[("dtap_s_t_sum",)] == 28
    assert service.end() == 0


@pytest.mark.needs_root
@pytest.mark.needs_bpf
def test_below_zero(serve):
    """Bounds around 0, and no sum where values are below it, by OpenMetrics' rules; with zero alone there is one."""
    service = serve("""listen: 127.0.0.1:0
scripts:
  s:
    stap: |
      global zero, both
      probe begin { zero <<< 0; for (i = -3; i <= 5; i++) both <<< i }
      probe end { print(@hist_log(zero)); print(@hist_log(both)) }
""")
    service.until(lambda found: ("dtap_s_both_count",) in found, "the values")
    for accept in {}, {"Accept": "application/openmetrics-text;version=1.0.0"}:
        text = service.ask(**accept)[1]
        found = parsed(text)
        assert found[("dtap_s_zero_sum",)] == 0 and found[("dtap_s_zero_count",)] == 1
        assert ("dtap_s_both_sum",) not in found
        assert buckets(found, "dtap_s_zero") == {"0.0": 1, "+Inf": 1}
        at = buckets(found, "dtap_s_both")
        assert at.pop("+Inf") == 9
        assert at == {le: sum(1 for i in range(-3, 6) if i <= float(le)) for le in at}
        assert {-2, -1, 0, 1, 3, 7} <= {float(le) for le in at}
    assert service.end() == 0


@pytest.mark.needs_root
def test_mistakes(tmp_path):
    """Each is told with its line: of the configuration, or of the script's file."""
    script = tmp_path / "bad.stp"
    script.write_text("global n\nprobe begin { n = nosuch(1) }\n")
    config = tmp_path / "serve.yaml"

    def said(text):
        config.write_text("listen: 127.0.0.1:0\n" + text)
        ran = subprocess.run([DTAP, "serve", "--check", "-f", config], capture_output=True, text=True, timeout=harness.TIMEOUT_S)
        assert ran.returncode == 1 and ran.stdout == "", ran
        return ran.stderr
    told = said(f"scripts:\n  a: {{ script: {script} }}\n")
    assert re.search(rf"^{re.escape(str(config))}:3:3: a: .*nosuch.* at {re.escape(str(script))}:2:19$", told, re.M), told
    told = said("scripts:\n  a:\n    stap: |\n      global n\n      probe begin { n = nosuch(1) }\n")
    assert re.search(r"serve\.yaml:3:3: a: .*nosuch.* at <input>:6:19$", told, re.M), told
    told = said("rules: { r: { user: root } }\nscripts:\n  a: { rule: r, stap: 'probe begin { }', options: { place: kernel } }\n")
    assert "serve.yaml:4:3: a: a rule selects processes in the target place alone" in told
    told = said("scripts:\n  a: { stap: 'probe begin { }', program: 'BEGIN { }' }\n")
    assert re.search(r"serve\.yaml:3:\d+: a script is one of", told)
