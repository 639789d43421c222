"""What comes with dtap serve: a configuration, a dashboard, alerts, and a DaemonSet.  All metrics that they name exist."""
import json
import re
import shutil
import subprocess
import textwrap

import pytest

import harness
from serving import DTAP, programs, serve, total      # noqa: F401: serve and programs are fixtures

SERVICE = harness.TOP / "share" / "service"
METRIC = re.compile(r"\b(?:dtap|process)_\w+")

# Raises and collects once, so that all metrics of the standard set are there.
PROGRAM = """
import gc, sys
print("ready", flush=True)
for line in sys.stdin:
    try:
        {}["nosuch"]
    except KeyError:
        pass
    gc.collect()
    print(0, flush=True)
"""


def asked():
    """{file: names of metrics in its questions}"""
    dashboard = json.loads((SERVICE / "dashboard.json").read_text())
    exprs = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    exprs += [variable["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    alerts = re.findall(r"^ *expr: (.*)$", (SERVICE / "alerts.yml").read_text(), re.M)
    return {"dashboard.json": set(METRIC.findall("\n".join(exprs))), "alerts.yml": set(METRIC.findall("\n".join(alerts)))}


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
def test_names(interp, serve, programs):
    child = programs.start(interp.argv_of(PROGRAM))
    text = (SERVICE / "serve.yaml").read_text().replace("    command:", "    rule: mine\n    command:")
    service = serve(f'listen: 127.0.0.1:0\nrules: {{ mine: {{ environment: {{ DTAP_SERVE_TEST: "{programs.mark}" }} }} }}\n' + text)
    service.until(lambda found: total(found, "dtap_serve_processes") == 2, "the process")
    child.stdin.write("\n")
    child.stdin.flush()
    assert child.stdout.readline() == "0\n"
    found = service.metrics()
    assert total(found, "dtap_gc_runs_total") >= 1 and total(found, "dtap_exceptions_count_total", type="KeyError") == 1
    there = {line.split()[2] for line in service.ask()[1].splitlines() if line.startswith("# TYPE ")}
    for name, metrics in asked().items():
        assert len(metrics) > 8 and metrics <= there, name
    programs.end(child)
    assert service.end() == 0


def test_checks(tmp_path):
    """The configurations have no mistakes; the DaemonSet's names files that a pod has."""
    inside = re.search(r"serve\.yaml: \|\n(.*?)^---", (SERVICE / "kubernetes.yaml").read_text(), re.M | re.S)[1]
    text = textwrap.dedent(inside).replace("/run/dtap-secret/", f"{tmp_path}/")
    for name in "tls.crt", "tls.key", "token":
        (tmp_path / name).write_text("0123456789abcdef")
        (tmp_path / name).chmod(0o400)
    (tmp_path / "serve.yaml").write_text(text)
    for path in SERVICE / "serve.yaml", tmp_path / "serve.yaml", harness.TOP / "share/clickhouse/serve.yaml":
        result = harness.run([DTAP, "serve", "--check", "-f", path])
        assert result.code == 0 and "no mistakes" in result.out, result


@pytest.mark.skipif(not shutil.which("promtool"), reason="there is no promtool: tools/need stores")
def test_alerts():
    """Prometheus takes the alerts, and the dashboard's questions."""
    result = subprocess.run(["promtool", "check", "rules", SERVICE / "alerts.yml"], capture_output=True, text=True, check=False)
    assert result.returncode == 0 and re.search(r"\d+ rules found", result.stdout), result.stdout + result.stderr


@pytest.mark.skipif(not shutil.which("promtool"), reason="there is no promtool: tools/need stores")
def test_questions(tmp_path):
    dashboard = json.loads((SERVICE / "dashboard.json").read_text())
    exprs = [target["expr"].replace("$__rate_interval", "5m") for panel in dashboard["panels"] for target in panel["targets"]]
    lines = [f"      - record: q{i}\n        expr: {json.dumps(expr)}\n" for i, expr in enumerate(exprs)]
    (tmp_path / "rules.yml").write_text("groups:\n  - name: all\n    rules:\n" + "".join(lines))
    result = subprocess.run(["promtool", "check", "rules", tmp_path / "rules.yml"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
