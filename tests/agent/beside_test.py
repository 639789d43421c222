"""The agent beside other tools: what they see, and what is there after it has gone."""
import subprocess

import pytest

from agent.agent_test import agent, end, ready
from agent.channel import READY
from agent.control_test import ENTERED, ask, bits, listen, listener, preloaded  # noqa: F401

pytestmark = pytest.mark.needs_root

# A program with its own trace and profile functions.  Each command runs the same work; the answer says what the
# functions were told and what sys.gettrace() and sys.getprofile() give.
TOOL = """
import sys, threading
def leaf(n):
    return n
def values():
    yield leaf(1)
    try:
        leaf(2)
        raise KeyError(1)
    except KeyError:
        pass
def work():
    for i in range(3): leaf(i)
    return list(values())
traced, profiled = [], []
def trace(frame, event, arg):
    if frame.f_code.co_filename == __file__:
        traced.append((frame.f_code.co_name, event, frame.f_lineno))
    return trace
def profile(frame, event, arg):
    if frame.f_code.co_filename == __file__:
        profiled.append((frame.f_code.co_name, event, frame.f_lineno))
def failing(frame, event, arg):
    if frame.f_code is leaf.__code__:
        raise ValueError(event)
    return failing
def run(command):
    traced.clear()
    profiled.clear()
    if command == "set":
        sys.settrace(trace)
        sys.setprofile(profile)
    elif command == "unset":
        sys.settrace(None)
        sys.setprofile(None)
    elif command == "fail":
        sys.settrace(failing)
        try:
            leaf(1)
        except ValueError:
            pass
    work()
    text = repr((traced, profiled, sys.gettrace(), sys.getprofile()))
    if command == "thread":
        threading.settrace(trace)
        thread = threading.Thread(target=run, args=("work",))
        thread.start()
        thread.join()
        threading.settrace(None)
    answers.append("%d %d %s" % (len(traced), len(profiled), text))
answers = []
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        break
    answers.clear()
    run(line.strip())
    print(" ".join(answers).replace(hex(id(trace)), "X").replace("\\n", " "), flush=True)
"""


@pytest.fixture
def tool(interp, listener):  # noqa: F811
    child = preloaded(interp, listener, interp.add(TOOL, "tool.py"))
    channel, _ = listener.hello()
    ready(child)

    def hooks(*names):
        for name in ("function__entry", "function__return", "line"):
            listen(child.pid, name, name in names)
        assert channel.look().supplied == bits(*names)

    yield child, hooks
    child.kill()


ALL = "function__entry", "function__return", "line"


@pytest.mark.parametrize("names", [ALL, ALL[:2], ALL[2:]], ids=["both", "calls", "lines"])
def test_set_before(tool, names):
    """Functions that the program has set go on being called, with the same events, and are found."""
    child, hooks = tool
    plain = ask(child, "set")
    assert int(plain.split()[0]) > 20 and int(plain.split()[1]) > 8
    for _ in range(3):
        hooks(*names)
        hooked = ask(child, "work")
        hooks()
        assert ask(child, "work") == hooked
    unset = ask(child, "unset")
    assert unset.endswith("None, None)")
    assert end(child) == []


def test_set_while_hooked(tool):
    child, hooks = tool
    before = ask(child, "work")
    hooks(*ALL)
    assert ask(child, "work") == before
    set_hooked = ask(child, "set")
    work_hooked = ask(child, "work")
    unset_hooked = ask(child, "unset")
    assert ask(child, "work") == before
    hooks()
    assert ask(child, "work") == before
    assert ask(child, "set") == set_hooked and ask(child, "work") == work_hooked
    hooks(*ALL)
    assert ask(child, "unset") == unset_hooked
    assert ask(child, "work") == before
    hooks()
    assert ask(child, "work") == before
    assert end(child) == []


def test_other_threads(tool):
    """threading.settrace() for a thread that is started while the agent traces."""
    child, hooks = tool
    plain = ask(child, "thread")
    hooks(*ALL)
    assert ask(child, "thread") == plain
    hooks()
    assert ask(child, "thread") == plain
    assert end(child) == []


def test_failing_function(tool):
    """A trace function that raises is removed by the interpreter; the agent's stays."""
    child, hooks = tool
    plain = ask(child, "fail")
    hooks(*ALL)
    assert ask(child, "fail") == plain
    assert ask(child, "work").startswith("0 0")
    hooks()
    assert ask(child, "work").startswith("0 0")
    assert end(child) == []


MONITORING = """
import sys
monitoring = sys.monitoring
counts = {}
def leaf():
    return 1
def counted(name):
    def callback(*args):
        counts[name] = counts.get(name, 0) + 1
    return callback
def use(tool):
    monitoring.use_tool_id(tool, "other")
    for name in "PY_START", "PY_RETURN", "LINE":
        event = getattr(monitoring.events, name)
        monitoring.register_callback(tool, event, counted(name))
print("ready", flush=True)
for line in sys.stdin:
    command = line.split()
    if command[0] == "go":
        break
    if command[0] == "all":
        for tool in range(6):
            use(tool)
    elif command[0] == "free":
        monitoring.free_tool_id(int(command[1]))
    elif command[0] == "use":
        use(int(command[1]))
        monitoring.set_events(int(command[1]), 1 | 4 | 32)
    counts.clear()
    for i in range(5): leaf()
    print(sorted(counts.items()), [monitoring.get_tool(i) for i in range(6)], flush=True)
"""


@pytest.fixture
def monitoring(interp, listener):  # noqa: F811
    child = preloaded(interp, listener, interp.add(MONITORING, "monitoring.py"))
    channel, _ = listener.hello()
    ready(child)
    yield child, channel
    child.kill()


@pytest.mark.interps("3.13", "3.14", "3.15")
def test_other_tool(monitoring):
    """Another monitoring tool keeps its id, its events, its callbacks."""
    child, channel = monitoring
    ask(child, "use 3")
    before = ask(child, "work")
    assert "PY_START" in before
    for _ in range(3):
        for name in ALL:
            listen(child.pid, name)
        assert channel.look().supplied == bits(*ALL)
        assert ask(child, "work") == before.replace("'other', None", "'other', 'dtap'")
        for name in ALL:
            listen(child.pid, name, 0)
        channel.look()
        assert ask(child, "work") == before
    assert end(child) == []


@pytest.mark.interps("3.13", "3.14", "3.15")
def test_all_tools_taken(monitoring):
    """Without a free id calls are not supplied, and the state says why; as soon as one is free they are."""
    child, channel = monitoring
    ask(child, "all")
    listen(child.pid, "function__entry")
    listen(child.pid, "line")
    state = channel.look()
    assert state.supplied == bits("line") and "sys.monitoring" in state.why, state
    ask(child, "free 4")
    state = channel.look()
    assert state.supplied == bits("line", "function__entry") and state.why == "", state
    assert "'dtap'" in ask(child, "work")
    assert end(child) == []


REFUSE = """
import sys
def refuse(event, args):
    if event == "sys.addaudithook":
        raise RuntimeError("no")
sys.addaudithook(refuse)
"""


def test_audit_refused(interp, listener):  # noqa: F811
    """An audit hook that refuses others leaves the rest of the agent at work."""
    child = subprocess.Popen([*interp.argv, interp.add(REFUSE + ENTERED, "refuse.py"), agent(interp)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        ready(child)
        assert ask(child, f"connect {listener.name}") == "0"
        channel = listener.accept_plain()
        assert channel.receive().phase == READY
        listen(child.pid, "audit")
        listen(child.pid, "gc__start")
        state = channel.look()
        assert state.supplied == bits("gc__start") and "audit" in state.why, state
        assert end(child) == []
    finally:
        child.kill()
