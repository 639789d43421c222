"""One run of a script: the tracer as a child, records and aggregations as objects (dtap-stream(1)).

The traced process may be this one.  Therefore what reads lines calls no functions of Python but this package's, which
dtap.calls() leaves out: lines are read and scanned by functions of C, and become named tuples, whose makers are functions
of modules of their own, when the user asks for them.
"""
from __future__ import annotations

import io
import json
import os
import shlex
import socket
import subprocess
from collections import deque
from types import TracebackType
from typing import Any, Deque, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Type, Union

from dtap._program import program

# The scanner of C that json.loads() calls; json.loads() itself is a function of Python.
_scan = json.JSONDecoder(strict=False).scan_once

PR_SET_PTRACER = 0x59616D61


class Message(NamedTuple):
    """What the tracer has to say."""

    level: str
    """error, warning, note, drop (data that were lost, faults of the script) or dump"""
    text: str
    """Complete lines, as the command dtrace or stap prints them"""


class Action(NamedTuple):
    """What one action of a clause has recorded."""

    name: str
    """printf, trace, stack, printa ..."""
    text: Optional[str]
    """What printf printed; else None"""
    values: List[Any]
    """Its arguments: int, str, float; a stack is a list of str, its frames as they are printed, the innermost first"""


class Record(NamedTuple):
    """One firing of one clause."""

    time_ns: int
    """When it was, as time.monotonic_ns() counts"""
    pid: int
    tid: int
    cpu: int
    provider: str
    module: str
    function: str
    name: str
    """provider, module, function, name: the probe"""
    actions: List[Action]

    @property
    def values(self) -> List[Any]:
        """The values of all actions."""
        return [value for action in self.actions for value in action.values]

    @property
    def text(self) -> str:
        """What its printf actions printed."""
        return "".join(action.text for action in self.actions if action.text)


class Row(NamedTuple):
    """One key of one aggregation."""

    aggregation: str
    """Its name; empty for @"""
    function: str
    """count, sum, avg, quantize ..."""
    keys: Tuple[Any, ...]
    value: Any
    """None where there are buckets"""
    buckets: Optional[List[Tuple[int, int]]]
    """Of distributions: the smallest value of each bucket, and how many there were"""
    count: int
    """Of avg and stddev: how many values"""
    sum: int
    """Of avg and stddev: the sum of the values"""


class Error(Exception):
    """A script that is wrong, a process that cannot be traced, data that were lost; the tracer's own words."""

    def __init__(self, words: str, messages: Sequence[Message] = ()) -> None:
        super().__init__(words.rstrip("\n"))
        self.messages = list(messages)


def _as_key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _record(line: Mapping[str, Any]) -> Record:
    actions = [Action(action["name"], action.get("text"), action["values"]) for action in line["actions"]]
    return Record(line["time_ns"], line["pid"], line["tid"], line["cpu"], line["provider"], line["module"],
                  line["function"], line["name"], actions)


def _row(line: Mapping[str, Any]) -> Row:
    buckets = line.get("buckets")
    return Row(line["aggregation"], line["function"], tuple([_as_key(key) for key in line["keys"]]), line.get("value"),
               None if buckets is None else [(least, n) for least, n in buckets], line.get("count", 0), line.get("sum", 0))


def _prctl(option: int, argument: int) -> None:
    """Without ctypes nothing is done: the tracer then tells that it may not trace."""
    try:
        import ctypes
    except ImportError:
        return
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(argument), 0, 0, 0)


def _yama_is_strict() -> bool:
    """Does the kernel let a process be traced by its ancestors alone (Yama)?"""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return file.read(1) == "1"
    except OSError:
        return False


class Trace:
    """A run of a script, made by trace(): a context manager, and an iterator over its records.

    Iteration waits for records, and ends when the run does: by the script's exit(), by the end of the traced processes, by
    stop().  The end of the with statement stops the run, and drops the records that were not read.
    """

    status: int = 0
    """From the end on: the status of the script's exit()"""
    command_status: Optional[int] = None
    """From the end on: the exit status of the command; negative: the signal that ended it; None: it runs on, or there is none"""

    def __init__(self, argv: Sequence[str], is_own: bool) -> None:
        self._argv = argv
        self._is_own = is_own
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._lines: Optional[io.BufferedReader] = None
        self._records: Deque[Mapping[str, Any]] = deque()
        self._rows: List[Mapping[str, Any]] = []
        self._is_running = False
        self._is_stopped = False
        self._error = ""
        self._messages: List[Mapping[str, Any]] = []
        self.lost: Dict[str, int] = {}
        """How much was lost so far, by kind: record, aggregation ..."""

    # --- begin and end

    def __enter__(self) -> Trace:
        """Start the tracer; returns when the probes are armed."""
        if self._child:
            raise RuntimeError("a run is made once; call dtap.trace() again")
        near, far = socket.socketpair()
        with near, far:
            if self._is_own and _yama_is_strict():
                _prctl(PR_SET_PTRACER, os.getpid())
            self._child = subprocess.Popen([*self._argv[:2], f"--channel={far.fileno()}", *self._argv[2:]],
                                           pass_fds=[far.fileno()])
            self._lines = io.open(near.detach(), "rb")
        try:
            while not self._is_running and self._read():
                pass
        except BaseException:
            self._close()
            raise
        if not self._is_running:
            self._close()
            self._raise()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """Stop the run, and wait for its end."""
        try:
            self.stop()
            while self._read():
                pass
        finally:
            self._close()

    def stop(self) -> None:
        """End the run: the script's END runs, and the records that are left can be read."""
        if self._lines and not self._is_stopped:
            self._is_stopped = True
            self._ask(b"stop\n")

    def _close(self) -> None:
        if self._lines:
            self._lines.close()
            self._lines = None
            if self._is_own and _yama_is_strict():
                _prctl(PR_SET_PTRACER, 0)
        if self._child:
            self._child.wait()

    def _raise(self) -> None:
        words = "".join([line["text"] for line in self._messages if line["level"] == "error"])
        raise Error(words or self._error or "dtap's program has ended", self.messages)

    # --- lines

    def _ask(self, request: bytes) -> None:
        assert self._lines
        try:
            os.write(self._lines.fileno(), request)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def _read(self) -> str:
        """Read a line, and keep what it says; the event's name, "" at the end."""
        if not self._lines:
            return ""
        text = self._lines.readline()
        if not text:
            return ""
        line = _scan(text.decode("utf-8"), 0)[0]
        event: str = line["event"]
        if event == "record":
            self._records.append(line)
        elif event == "row":
            self._rows.append(line)
        elif event == "message":
            self._messages.append(line)
        elif event == "lost":
            self.lost[line["kind"]] = self.lost.get(line["kind"], 0) + line["n"]
        elif event == "started":
            self._is_running = True
        elif event == "end":
            self._is_running = False
            self._error = line["error"]
            self.status = line["status"]
            self.command_status = line.get("command")
            self._is_stopped = True
        return event

    # --- results

    @property
    def messages(self) -> List[Message]:
        """What the tracer has said so far."""
        return [Message(line["level"], line["text"]) for line in self._messages]

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        """The next record; waits for it."""
        while not self._records:
            if self._read() in ("", "end"):
                if self._records:
                    break
                if self._error:
                    self._raise()
                raise StopIteration
        return _record(self._records.popleft())

    def rows(self) -> List[Row]:
        """The aggregations: what they are now while the run goes on, what they have become when it has ended."""
        return [_row(line) for line in self.lines_of_rows()]

    def lines_of_rows(self) -> List[Mapping[str, Any]]:
        """The same, as the tracer writes them.  Calls no function of Python."""
        if self._lines and not self._is_stopped:
            self._rows.clear()
            self._ask(b"rows\n")
            while self._read() not in ("rows", "end", ""):
                pass
        elif self._lines:
            while self._read() not in ("end", ""):
                pass
        return self._rows


def trace(pid: Union[int, Iterable[int], None], script: str, *, command: Union[str, Sequence[str], None] = None,
          language: str = "d", options: Optional[Mapping[str, Union[str, int, bool]]] = None,
          arguments: Iterable[Union[str, int]] = (), destructive: bool = False) -> Trace:
    """Run a script.

    pid: the traced process, or several; os.getpid() is this one.  None: the command, or what the script names.
    script: its text, in the language "d" or "stap".
    command: a command line, or a list of words, which is started and traced from its beginning on.
    options: dtrace's, as {"place": "target", "aggsize": "32m"}; True is an option without a value.
    arguments: the script's $1, $2 ...
    destructive: permit destructive actions.

    Use it as a context manager; Error is raised where the script is wrong, or the process cannot be traced.
    """
    pids = [] if pid is None else [pid] if isinstance(pid, int) else list(pid)
    argv = [program(), "stream", f"--language={language}", f"--script={script}"]
    for name, value in (options or {}).items():
        if value is not False:
            argv.append(f"--option={name}" if value is True else f"--option={name}={value}")
    argv += [f"--pid={one}" for one in pids]
    if command is not None:
        argv.append("--command=" + (command if isinstance(command, str) else " ".join(shlex.quote(word) for word in command)))
    if destructive:
        argv.append("--destructive")
    return Trace([*argv, "--", *(str(one) for one in arguments)], os.getpid() in pids)
