"""The budget of dtap serve.  The witness of whether a process is traced is its interpreter, of calls the program itself."""
import signal

import pytest

from budget_test import HOOKED
from serving import programs, rule, serve, total, traced      # noqa: F401: serve and programs are fixtures

CONFIG = """listen: 127.0.0.1:0
{budget}
{rule}scripts:
  hot: {{ command: calls, rule: mine }}
  cheap:
    rule: mine
    program: "py*:*:rare:entry {{ @ = count(); }}"
"""

PROGRAM = HOOKED.replace('say("ready")', "") + """
def rare(): pass

def tools():
    return sum(bool(sys.monitoring.get_tool(n)) for n in range(6)) if hasattr(sys, "monitoring") else hooked() + 1

say("ready")
for _ in range(100):
    leaf()
say("called")
while tools() == 2:
    for _ in range(1000):
        leaf()
for _ in range(50):
    rare()
say("rests", tools())
"""


def value(found, name, script):
    return found[(f"dtap_budget_{name}", ("script", script))]


@pytest.mark.needs_root
@pytest.mark.alone      # other tests' scripts about every Python would hook it, too
@pytest.mark.interps("3.13")
def test_budget(interp, serve, programs):
    """Without a budget what is spent is told; with one, the dearest script rests, and the others stay exact."""
    child = programs.start(interp.argv_of(PROGRAM))
    service = serve(CONFIG.format(rule=rule(programs), budget=""))
    traced(service, "hot", 1)
    traced(service, "cheap", 1)

    def tell():
        child.stdin.write("\n")
        child.stdin.flush()
        return child.stdout.readline().split()

    assert tell() == ["called"]
    found = service.metrics()
    assert total(found, "dtap_hot_calls_total", function="leaf") == 100
    assert value(found, "events_total", "hot") >= 100 and 0 < value(found, "spent_seconds_total", "hot") < 1
    for script in "hot", "cheap":
        assert value(found, "bounded", script) == 0 and value(found, "exact", script) == 1
        assert value(found, "rests_total", script) == 0
    service.child.args[3].write_text(CONFIG.format(rule=rule(programs), budget="budget: 0.01%"))
    service.child.send_signal(signal.SIGHUP)
    service.heard("the configuration was read again")
    assert tell() == ["rests", "1"]
    service.heard(f"hot: process {child.pid} is not traced for 1 s or longer")
    found = service.until(lambda found: value(found, "exact", "hot") == 0, "the metric of what was said")
    assert value(found, "resting", "hot") == value(found, "rests_total", "hot") == value(found, "bounded", "hot") == 1
    assert value(found, "exact", "cheap") == 1 and value(found, "resting", "cheap") == 0
    found = service.until(lambda found: total(found, "dtap_serve_lost_total", script="hot", kind="budget") == 1, "the loss")
    assert total(found, "dtap_serve_lost_total", script="cheap") == 0
    assert found[("dtap_cheap_total",)] == 50
    assert value(found, "ratio", "hot") > 0.0001
    assert service.end() == 0


IN_KERNEL = """listen: 127.0.0.1:0
budget: 1%
scripts:
  hot: { options: { place: kernel }, program: "syscall::getppid:entry { @ = count(); }" }
  cheap: { options: { place: kernel }, program: "syscall::getsid:entry /arg0 == 0/ { @ = count(); } syscall::getpgid:entry { @g = count(); }" }
"""
ASKING = """
import ctypes
getppid = ctypes.CDLL(None).getppid
print("ready", flush=True)
while True:
    getppid()
"""


@pytest.mark.needs_bpf
@pytest.mark.alone      # every process of the machine is bounded
@pytest.mark.interps("3.11")
def test_budget_in_the_kernel(interp, serve, programs):
    """What a script about system calls costs a process that makes nothing else is bounded: it rests, and goes on when it is gone."""
    service = serve(IN_KERNEL)
    service.until(lambda found: total(found, "dtap_serve_script_up") == 2, "the scripts")
    child = programs.start(interp.argv_of(ASKING))
    found = service.until(lambda found: sum(value(found, "resting", script) for script in ("hot", "cheap")) >= 1, "a rest")
    # Either may be the one: each has a program at each system call, and what the other has cost is known when that is looked at next.
    [rests, *_] = [script for script in ("hot", "cheap") if value(found, "resting", script)]
    assert value(found, "bounded", "hot") == 1 and value(found, "spent_seconds_total", rests) > 0
    assert value(found, "ratio", rests) > 0.01
    service.heard("nothing is traced for")
    child.kill()
    child.wait()
    service.until(lambda found: sum(value(found, "resting", script) for script in ("hot", "cheap")) == 0, "the end of the rest")
    assert service.end() == 0
