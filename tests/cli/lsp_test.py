"""dtap lsp, by a client of the Language Server Protocol over its standard input and output."""
import contextlib
import json
import os
import queue
import random
import re
import subprocess
import threading
import urllib.parse

import pytest

import harness

SHARE = harness.TOP / "share"
TESTS = harness.TOP / "tests"
ERROR, WARNING, INFORMATION = 1, 2, 3


class Client:
    """What an editor does: it sends whole messages, and takes what comes in the order in which it comes."""

    def __init__(self, *options, wrapper=(), env=None):
        self.process = subprocess.Popen([*wrapper, harness.BUILD / "dtap", "lsp", *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.buffer, self.ids, self.versions = b"", 0, {}
        self.pieces = queue.Queue()
        self.reader = threading.Thread(target=self.drain, daemon=True)  # neither side may wait for the other to read
        self.reader.start()
        self.told = []              # notifications that were not waited for yet

    def drain(self):
        while data := os.read(self.process.stdout.fileno(), 1 << 16):
            self.pieces.put(data)
        self.pieces.put(b"")

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        body = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def read(self):
        """The next message; None at the end."""
        while b"\r\n\r\n" not in self.buffer:
            if not self.more():
                return None
        header, _, rest = self.buffer.partition(b"\r\n\r\n")
        length = int(re.fullmatch(rb"Content-Length: (\d+)", header)[1])
        while len(rest) < length:
            assert self.more()
            rest = self.buffer.partition(b"\r\n\r\n")[2]
        self.buffer = rest[length:]
        return json.loads(rest[:length].decode())

    def more(self):
        data = self.pieces.get(timeout=harness.TIMEOUT_S)
        self.buffer += data
        return data

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def request(self, method, **params):
        """The response, whole."""
        self.ids += 1
        self.send({"id": self.ids, "method": method, "params": params})
        return self.response(self.ids)

    def response(self, number):
        while (message := self.read()) and message.get("id", -1) != number:
            self.told.append(message)
        assert message and message["jsonrpc"] == "2.0"
        return message

    def start(self):
        result = self.request("initialize", processId=None, rootUri=None, capabilities={
            "textDocument": {"hover": {"contentFormat": ["plaintext"]}}})["result"]
        self.notify("initialized")
        return result["capabilities"]

    def open(self, text, name="x.d", language="", wait=True):
        """Open a document, or change it whole; its diagnostics."""
        uri = f"file:///nowhere/{urllib.parse.quote(name)}"
        version = self.versions[uri] = self.versions.get(uri, 0) + 1
        item = {"uri": uri, "version": version}
        if version == 1:
            self.notify("textDocument/didOpen", textDocument={**item, "text": text, "languageId": language})
        else:
            self.notify("textDocument/didChange", textDocument=item, contentChanges=[{"text": text}])
        return self.diagnostics(uri) if wait else uri

    def diagnostics(self, uri):
        while True:
            for message in self.told:
                if "params" in message and message["params"]["uri"] == uri and message["params"].get("version") == self.versions[uri]:
                    self.told.remove(message)
                    assert message["method"] == "textDocument/publishDiagnostics"
                    return message["params"]["diagnostics"]
            message = self.read()
            assert message, self.process.communicate()[1]
            self.told.append(message)

    def ask(self, what, text, name="x.d"):
        """Of the position where "|" is in the text."""
        before, _, after = text.partition("|")
        uri = self.open(before + after, name, wait=False)
        answer = self.request(f"textDocument/{what}", textDocument={"uri": uri}, position=position(before))
        assert "result" in answer, answer
        return answer["result"]

    def complete(self, text, name="x.d"):
        """Items by their labels, each applied to the text as an editor does."""
        result = self.ask("completion", text, name)
        assert result["isIncomplete"] is False
        return {item["label"]: item for item in result["items"]}

    def hover(self, text, name="x.d"):
        found = self.ask("hover", text, name)
        return found["contents"]["value"] if found else None

    def definition(self, text, name="x.d"):
        """(file or None for the document, line of text that the range begins in, text of the range)"""
        found = []
        whole = text.replace("|", "", 1)
        for place in self.ask("definition", text, name):
            path = urllib.parse.unquote(urllib.parse.urlsplit(place["uri"]).path)
            own = path.startswith("/nowhere/")
            lines = (whole if own else open(path).read()).splitlines()
            start, end = place["range"]["start"], place["range"]["end"]
            line = lines[start["line"]]
            found.append((None if own else os.path.basename(path), line, line[start["character"]:end["character"]]))
        return found

    def stop(self):
        """End as the protocol has it."""
        assert self.request("shutdown")["result"] is None
        self.notify("exit")
        self.process.stdin.close()
        return self.process.wait(harness.TIMEOUT_S)


def units(text):
    return len(text.encode("utf-16-le")) // 2


def position(before):
    lines = re.split(r"\r\n|\n|\r", before)
    return {"line": len(lines) - 1, "character": units(lines[-1])}


@contextlib.contextmanager
def running(*options, start=True, **how):
    client = Client(*options, **how)
    try:
        if start:
            client.start()
        yield client
        if start:
            assert client.stop() == 0
    finally:
        client.process.kill()
        client.process.wait()
        client.reader.join()
        errors = client.process.stderr.read().decode()
        for stream in (client.process.stdin, client.process.stdout, client.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()
        assert not harness.SANITIZER_REPORT.search(errors), errors


@pytest.fixture(scope="module")
def server():
    with running() as client:
        yield client


# --- the life of a server ----------------------------------------------------------------------------

def test_life():
    with running(start=False) as client:
        assert client.request("textDocument/hover")["error"]["code"] == -32002
        client.notify("textDocument/didOpen", textDocument={"uri": "file:///x.d", "version": 1, "text": "x", "languageId": "d"})
        capabilities = client.start()
        assert capabilities["positionEncoding"] == "utf-16"
        assert capabilities["hoverProvider"] and capabilities["definitionProvider"] and capabilities["completionProvider"]
        assert client.request("initialize", capabilities={})["error"]["code"] == -32600
        assert client.request("nosuch/method")["error"]["code"] == -32601
        client.notify("nosuch/method")
        client.notify("$/cancelRequest", id=1)
        client.send({"id": 99, "result": None})             # an answer to nothing
        answer = client.request("textDocument/hover", textDocument={"uri": "file:///x.d"}, position={"line": 0, "character": 0})
        assert answer["error"]["code"] == -32602            # opened too early
        assert client.request("shutdown")["result"] is None
        assert client.request("textDocument/hover")["error"]["code"] == -32600
        client.notify("exit")
        assert client.process.wait(harness.TIMEOUT_S) == 0
        assert not client.told


@pytest.mark.parametrize("end", [lambda client: client.notify("exit"), lambda client: client.process.stdin.close()],
                         ids=["exit", "closed"])
def test_ends_with_its_client(end):
    with running(start=False) as client:
        client.start()
        client.open("BEGIN { x", wait=False)
        end(client)
        assert client.process.wait(harness.TIMEOUT_S) == 1


def test_strings_as_ids(server):
    server.send({"id": "a\u00e9b", "method": "textDocument/hover", "params": {}})
    assert server.response("a\u00e9b")["error"]["code"] == -32602


def test_command_line():
    for words, code in ((["--help"], 0), (["--nosuch"], 2), (["word"], 2), (["-L"], 2)):
        result = harness.run([harness.BUILD / "dtap", "lsp", *words])
        assert result.code == code and "usage" in result.out + result.err or code == 2, (words, result)
    page = (harness.TOP / "doc/man/dtap-lsp.1").read_text()
    help_text = harness.run([harness.BUILD / "dtap", "lsp", "--help"]).out
    assert set(re.findall(r"^  -(\w), --(\w+)", help_text, re.M)) == set(re.findall(r"^\.It Fl (\w) , Fl -(\w+)", page, re.M))


# --- diagnostics -------------------------------------------------------------------------------------

def shown(diagnostics):
    return [(d["severity"], d["range"]["start"]["line"], d["range"]["start"]["character"], d.get("code")) for d in diagnostics]


def test_diagnostics(server):
    text = "BEGIN\n{\n\tx = nosuch1;\n\ttrace(strlen());\n}\n"
    found = server.open(text, "diagnostics.d")
    assert shown(found) == [(ERROR, 2, 5, "D_IDENT_UNDEF"), (ERROR, 3, 7, "D_PROTO_LEN")]
    assert found[0]["range"]["end"] == {"line": 2, "character": 12} and "nosuch1" in found[0]["message"]
    assert found[0]["source"] == "dtap"
    assert server.open("BEGIN { x = 1; }", "diagnostics.d") == []


def test_all_errors_are_shown(server):
    text = "BEGIN {\n" + "".join(f"trace(nosuch{i});\n" for i in range(100)) + "}\n"
    assert [d["range"]["start"]["line"] for d in server.open(text)] == list(range(1, 101))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "/* äöü */ ", "/* 漢字 */ ", "/* 😀𝒳 */ ", "\t/* é😀 */\t"])
def test_columns_are_utf16(server, before, newline):
    line = before + "trace(nosuch);"
    text = newline.join(["BEGIN {", line, "}", ""])
    found = server.open(text)
    start = units(before + "trace(")
    assert [d["range"] for d in found] == [{"start": {"line": 1, "character": start}, "end": {"line": 1, "character": start + 6}}]
    found = server.open(newline.join(["probe begin {", before + "print(nosuch())", "}", ""]), "x.stp")
    start = units(before + "print(")
    assert [(d["range"]["start"], d["range"]["end"]) for d in found] == [
        ({"line": 1, "character": start}, {"line": 1, "character": start + 6})]


def test_library_problem_is_told(server, tmp_path):
    (tmp_path / "bad.d").write_text("inline int bad = nosuch;\n")
    with running("-L", tmp_path) as client:
        found = client.open("BEGIN { trace(bad); }")
        assert found and all("bad.d:1" in d["message"] for d in found if "nosuch" in d["message"])


WANTED = re.compile(r"/\* error: (\w+)")


def golden(folder, suffix):
    return sorted((TESTS / folder).glob(f"*.{suffix}"))


def wanted(text):
    """As the scripts' own comments say: (line, tag), once each."""
    return {(number, tag) for number, line in enumerate(text.split("\n")) for tag in WANTED.findall(line)}


@pytest.mark.parametrize("folder,suffix", [("d/parse", "d"), ("stp/parse", "stp")])
def test_golden_mistakes(server, folder, suffix):
    """The mistakes of grammar that the scripts' comments name, and no others on other lines."""
    wrong = {}
    paths = golden(folder, suffix)
    for path in paths if harness.NIGHTLY else random.Random(5).sample(paths, 80):
        text = path.read_bytes().decode(errors="replace")
        if "\ufffd" in text or "$" in text or re.search(r"^#\s*(define|include|if)", text, re.M):
            continue            # not UTF-8; arguments of a script, which are given here; the C preprocessor's
        found = {(d["range"]["start"]["line"], d["code"]) for d in server.open(text, f"golden.{suffix}") if d["severity"] == ERROR}
        expected = wanted(text)
        # What parses may have mistakes that a later stage finds.
        if not found >= expected or (expected and {line for line, _ in found} != {line for line, _ in expected}):
            wrong[path.name] = (found, expected)
    assert not wrong


SOUND = {
    # A command is a script for dtap, which puts some variables before it.
    "share": lambda: [path for path in SHARE.rglob("*") if path.suffix in (".d", ".stp", ".stpm")
                      and "commands" not in path.parts],
    # Those that are refused on purpose, need the C preprocessor, or may match no probe, say so.
    "golden": lambda: [path for path in golden("d/run", "d") + golden("stp/run", "stp") + sorted((TESTS / "d/guide").rglob("*.d"))
                       if not re.search(r"@@exit: 1\b|@@options:.* -[CDUIZ]\b", path.read_text(errors="replace"))],
}


@pytest.mark.parametrize("which", SOUND)
def test_scripts_that_run_have_no_mistakes(server, which):
    paths = SOUND[which]()
    assert len(paths) >= 50
    found = {path.name: [d for d in server.open(path.read_text(), str(path.relative_to(harness.TOP))) if d["severity"] == ERROR]
             for path in paths}
    assert not {name: wrong for name, wrong in found.items() if wrong}


def test_first_line_and_options(server):
    destructive = "BEGIN { system(\"true\"); }"
    assert [d["severity"] for d in server.open(destructive)] == [WARNING]
    assert server.open("#!/usr/sbin/dtrace -ws\n" + destructive) == []
    assert server.open("#pragma D option destructive\n" + destructive) == []
    guru = "probe begin { set_kernel_int(0, 1) }"
    assert len(server.open(guru, "guru.stp")) == 1
    with running("-w", "-g") as client:
        assert client.open(destructive) == []
    # An argument may be a number, a name or a string: a mistake on its line may be none.
    for text, weight in (('printf("%s", $1)', WARNING), ('x = $1 * "a"', WARNING), ('printf("%s", $$1 * 2)', ERROR),
                         ('printf("%s", 1)', ERROR)):
        found = server.open("BEGIN { %s; exit(0); }" % text)
        assert found and {d["severity"] for d in found} == {weight}, (text, found)
    [note] = server.open("#include <stdio.h>\nBEGIN { trace(1); }")
    assert note["severity"] == INFORMATION and "preprocessor" in note["message"]


@pytest.mark.parametrize("desc,count", [
    ("python$target:::function-entry", 0), ("python*:::line", 0), ("python$target:::functoin-entry", 1), ("py$target:m:f:entry", 0),
    ("py*:::line-12", 0), ("py$target:::entrance", 1), ("pid$target:libc.so.6:malloc:entry", 0), ("myserver*:::query", 0),
    ("syscall::openat:entry", 0), ("syscall::opennat:entry", 1), ("tick-1s", 0), ("tick-0s", 1), ("tick-$1s", 0),
    ("proc:::exec-success", 0), ("proc:::nosuch", 1), ("BEGIN", 0), ("BEGN", 1), ("fbt:::entry", 1), ("$1:::x", 0)])
def test_descriptions(server, desc, count):
    found = server.open(f"{desc} {{ trace(1); }}")
    assert len(found) == count, found
    assert all(d["range"]["start"] == {"line": 0, "character": 0} for d in found)


def test_arguments_of_probes(server):
    assert server.open("python$target:::function-entry { trace(args[2]); self->s = args[0]; }") == []
    assert shown(server.open("python$target:::gc-start { trace(args[1]); }")) == [(ERROR, 0, 33, "D_ARGS_IDX")]
    assert server.open("myserver*:::query { trace(args[3]); trace(arg3); }") == []
    assert server.open("syscall::read:entry { trace(args[2]); }") == []


@pytest.mark.parametrize("probe", [
    'process("/bin/true").function("main") { println($argc, $argv[0]$, $$parms, $x->y) }',
    'process("python3").mark("function__entry") { println(user_string($arg2)) }',
    'python3.module("m").function("f") { println($x . "") }', 'kernel.trace("sched_switch") { println($next->pid) }',
    "syscall.openat { println(filename) }", "python.function.entry { println(funcname, lineno) }", "timer.s(1) { exit() }",
    'process(@1).begin { println($1, @cast($1, "task_struct", "kernel")->pid) }'])
def test_points(server, probe):
    assert server.open(f"probe {probe}\n", "point.stp") == []


# --- changes -----------------------------------------------------------------------------------------

def offset_of(text, at):
    """The inverse of position(), by counting."""
    return next(i for i in range(len(text) + 1) if position(text[:i]) == at and not (i and text[i - 1:i + 1] == "\r\n"))


def test_changes_by_range(server):
    """Random edits, in UTF-16 positions: the server's text is then that of the client."""
    rnd = random.Random(19)
    pieces = ["é", "😀", "\n", "\r\n", "x", "{", "}", '"', "trace(nosuch);", "/*", "*/", " "]
    text = "BEGIN\n{\n\ttrace(1); /* ä😀 */\n}\n"
    uri = server.open(text, "edited.d", wait=False)
    for _ in range(60):
        starts = sorted(rnd.choice(range(len(text) + 1)) for _ in range(2))
        starts = [i - (text[i - 1:i + 1] == "\r\n") if i else i for i in starts]
        piece = rnd.choice(pieces)
        server.versions[uri] += 1
        server.notify("textDocument/didChange", textDocument={"uri": uri, "version": server.versions[uri]}, contentChanges=[
            {"range": {"start": position(text[:starts[0]]), "end": position(text[:starts[1]])}, "text": piece}])
        text = text[:starts[0]] + piece + text[starts[1]:]
        if "\n\r" in text or re.search(r"\r(?!\n)", text):
            text = text.replace("\r", "")
            server.open(text, "edited.d", wait=False)
    edited = server.diagnostics(uri)
    assert edited == server.open(text, "whole.d")


def test_positions_beyond_the_text(server):
    uri = server.open("BEGIN { trace(1); }", "short.d", wait=False)
    server.versions[uri] += 1
    server.notify("textDocument/didChange", textDocument={"uri": uri, "version": server.versions[uri]}, contentChanges=[
        {"range": {"start": {"line": 0, "character": 500}, "end": {"line": 70, "character": 2 ** 60}}, "text": "\nEND { trace(nosuch); }"}])
    assert shown(server.diagnostics(uri)) == [(ERROR, 1, 12, "D_IDENT_UNDEF")]


def test_too_long(server):
    [note] = server.open("BEGIN { trace(nosuch); }" + " " * (16 << 20), "long.d")
    assert note["severity"] == INFORMATION and "16 MiB" in note["message"]
    assert server.open("BEGIN { trace(1); }", "long.d") == []


def test_close_removes(server):
    uri = server.open("BEGIN { trace(nosuch); }", "closed.d", wait=False)
    assert server.diagnostics(uri)
    server.notify("textDocument/didClose", textDocument={"uri": uri})
    answer = server.request("textDocument/hover", textDocument={"uri": uri}, position={"line": 0, "character": 9})
    assert answer["error"]["code"] == -32602
    last = [message for message in server.told if message["params"]["uri"] == uri][-1]
    assert last["params"]["diagnostics"] == []


# --- completion --------------------------------------------------------------------------------------

def names(path, *macros):
    """The first word of each row of a table."""
    return set(re.findall(rf"^(?:{'|'.join(macros)})\((\w+)", (harness.TOP / "src" / path).read_text(), re.M))


def test_completes_tables_of_d(server):
    found = server.complete("BEGIN { x = |")
    for path, macro in (("d/globals.def", "D_GLOBAL"), ("d/subrs.def", "D_SUBR"), ("d/actions.def", "D_ACTION"),
                        ("d/aggfuncs.def", "D_AGGFUNC")):
        assert names(path, macro) <= set(found), path
        assert not names(path, f"{macro}_NONE") & set(found), path
    assert found["copyinstr"]["detail"] == "string copyinstr(uintptr_t, [size_t])"
    assert found["pid"]["detail"] == "pid_t pid"
    assert "ENOENT" in found and "psinfo_t" in found
    assert [label for label, item in found.items() if not item.get("documentation") and label not in names_of_libraries()] == []


def names_of_libraries():
    return set(re.findall(r"\w+", "".join(path.read_text() for path in (SHARE / "dlib").glob("*.d"))))


def test_completes_tables_of_stap(server):
    found = server.complete("probe begin { x = | }", "x.stp")
    rows = re.findall(r"^STP_FUNC\((\w+),.*?(BUILTIN|RUNTIME|CODE|WITH|PARTS|SHOW)\(", (harness.TOP / "src/stp/functions.def").read_text(), re.M)
    assert {name for name, _ in rows} <= set(found)
    tapset = "".join(path.read_text() for path in (SHARE / "tapset").rglob("*.stp"))
    assert set(re.findall(r"^function ([a-z]\w*)", tapset, re.M)) <= set(found)
    assert not set(re.findall(r"^private function (\w+)", tapset, re.M)) & set(found)
    assert found["user_string_n"]["detail"] == "user_string_n:string (long, long)"
    assert [label for label, item in found.items() if not item.get("documentation")] == []


def test_completes_probes(server):
    found = server.complete("|")
    markers = {name.replace("__", "-") for name in names("abi/marker.def", "ABI_MARKER")}
    assert {f"python$target:::{name}" for name in markers} | {"BEGIN", "END", "ERROR", "syscall::openat:entry"} <= set(found)
    assert {f"{prov}:::{name}" for prov, name in re.findall(r'^TASK\("(\w+)", "([\w-]+)"',
                                                            (harness.TOP / "src/probe/task.def").read_text(), re.M)} <= set(found)
    assert all(item["documentation"] for item in found.values())
    assert found["python$target:::function-entry"]["detail"] == "char *file, char *function, int line"
    found = server.complete("BEGIN { x = 1; }\n\npython$target:::gc-|\n{ trace(1); }")
    assert set(found) == {"python$target:::gc-start", "python$target:::gc-done"}
    edit = found["python$target:::gc-done"]["textEdit"]
    assert edit["range"] == {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 19}}
    assert edit["newText"] == "python$target:::gc-done"
    assert set(server.complete("BEGIN, tick-|")) == {"tick-1s"}


def test_completes_points(server):
    found = server.complete("probe |", "x.stp")
    tapset = "".join(path.read_text() for path in (SHARE / "tapset").glob("*.stp"))
    assert set(re.findall(r"^probe ([a-z][\w.]*) \+?=", tapset, re.M)) <= set(found)
    assert {"begin", "end", "timer.s(N)", "process(S).mark(S)"} <= set(found)
    assert all(item["documentation"] for item in found.values())
    found = server.complete("global x\nprobe begin, python.function.|\n", "x.stp")
    assert set(found) == {"python.function.entry", "python.function.return"}
    assert found["python.function.entry"]["textEdit"]["range"]["start"] == {"line": 1, "character": 13}


def test_completes_the_scripts_own(server):
    script = "BEGIN { self->start = 1; this->one = 2; @seen[pid] = count(); total += 1; names[1] = \"a\"; | }"
    assert {"total", "names"} <= set(server.complete(script.replace("|", "x = |")))
    assert set(server.complete(script.replace("|", "self->|"))) == {"start"}
    assert set(server.complete(script.replace("|", "this->o|"))) == {"one"}
    assert set(server.complete(script.replace("|", "printa(@|"))) == {"seen"}
    found = server.complete("global count, seen\n/* Twice. */\nfunction twice:long (n:long) { return 2 * n }\n"
                            "@define half(n) %( (@n / 2) %)\nprobe begin { local = 1; x = | }", "x.stp")
    assert {"count", "seen", "twice", "local"} <= set(found)
    assert (found["twice"]["detail"], found["twice"]["documentation"]) == ("function twice:long (n:long)", "Twice.")
    assert {"half", "count", "hist_log", "prints"} <= set(server.complete("@define half(n) %( @n %)\nprobe begin { x = @|", "x.stp"))


@pytest.mark.parametrize("text,name", [
    ("BEGIN { /* tr| */ }", "x.d"), ('BEGIN { trace("tr|"); }', "x.d"), ('BEGIN { trace("tr|', "x.d"), ("BEGIN { pid->p|", "x.d"), ("BEGIN { nosuch(1)->p|", "x.d"),
    ("probe begin { # pri|", "x.stp"), ('probe begin { print("pri|") }', "x.stp"), ("probe begin { x = $a|", "x.stp")])
def test_completes_nothing(server, text, name):
    assert server.complete(text, name) == {}


MEMBERS = set(re.findall(r"\b(pr_\w+)(?:\[\w*\])?;", re.search(r"struct psinfo {(.*?)} psinfo_t;", (SHARE / "dlib/procfs.d").read_text(), re.S)[1]))


@pytest.mark.parametrize("text", [
    "BEGIN { trace(curpsinfo->|", "BEGIN { trace(curpsinfo->|); }\nEND { x = 1; }", "BEGIN /curpsinfo->|/ { trace(1); }",
    "proc:::create { trace(args[0]->|", "BEGIN { if (1) { trace((*curpsinfo).|) } }"])
def test_completes_members(server, text):
    """Those of D's libraries, where the script goes on and where it ends."""
    found = server.complete(text)
    assert MEMBERS <= set(found) and all(name.startswith("pr_") for name in found)
    assert found["pr_pid"]["detail"] == "pid_t pr_pid"
    assert set(server.complete(text.replace("|", "pr_pi|"))) == {"pr_pid"}


def test_completes_members_of_the_script(server):
    script = ("struct in { int x; union { int y; char z[4]; }; };\nstruct out { struct in i; struct in *p; };\n"
              "BEGIN { this->o = (struct out *)alloca(8); trace(this->o->%s); }")
    assert set(server.complete(script % "|")) == {"i", "p"}
    assert set(server.complete(script % "i.|")) == set(server.complete(script % "p->|")) == {"x", "y", "z"}
    assert server.complete(script % "i.x.|") == {}


@pytest.mark.parametrize("text, name, wanted", [
    ('probe process("x").mark("m") { print($|) }', "x.stp", {"arg1", "arg6"}),
    ('probe process("x").mark("m") { print($$|) }', "x.stp", {"parms", "name", "provider"}),
    ('probe process("x").function("f") { print($$|) }', "x.stp", {"parms", "locals", "vars"}),
    ('probe process("x").function("f").return { print($r|) }', "x.stp", {"return"}),
    ('probe process("x").function("f") { a = $own; print($o|) }', "x.stp", {"own"}),
    ("function f() { return $$v|", "x.stp", {"vars"}),
    ("probe begin { print($|) }", "x.stp", set()),
    ("BEGIN { trace($t|); }", "x.d", {"target"}),
])
def test_completes_context_variables(server, text, name, wanted):
    found = set(server.complete(text, name))
    assert wanted <= found and (wanted or not found)


def test_completes_options(server):
    found = server.complete("#pragma D option |")
    assert names("session/options.def", "OPTION") <= set(found) and all(item["documentation"] for item in found.values())
    assert set(server.complete("#pragma D option aggsi|ze\nBEGIN {}")) == {"aggsize"}


def test_completes_keywords(server):
    assert {"probe", "function", "global"} <= set(server.complete("|\n", "x.stp"))
    assert "foreach" in server.complete("probe begin { fore| }", "x.stp")


# --- hover -------------------------------------------------------------------------------------------

D_SCRIPT = """int limit;
inline int TWO = 2;
python$target:::function-entry
/self->depth < limit/
{
	self->depth++;
	this->name = copyinstr(arg1);
	@calls[this->name, pid] = quantize(self->depth);
	seen[pid, this->name] = execname;
	info = curpsinfo;
	trace(info->pr_psargs);
	total = TWO;
}
"""


@pytest.mark.parametrize("word,shown", [
    ("self->dep|th++", "int64_t self->depth"), ("this->na|me = ", "string this->name"), ("@ca|lls", "@calls[string, pid_t] = quantize()"),
    ("se|en[", "string seen[pid_t, string]"), ("quan|tize", "quantize(any, ...)"), ("cop|yinstr", "string copyinstr(uintptr_t, [size_t])"),
    ("ar|g1", "int64_t arg1"), ("function-ent|ry", "python$target:::function-entry(char *file, char *function, int line)"),
    ("T|WO;", "inline int TWO = 2"), ("pr_psa|rgs", "string pr_psargs"), ("to|tal", "int total")])
def test_hover_of_d(server, word, shown):
    at = word.replace("|", "")
    assert at in D_SCRIPT
    text = server.hover(D_SCRIPT.replace(at, word, 1))
    assert text and text.split("\n")[0] == shown


STAP_SCRIPT = """global seen, last
/* Twice the number. */
function twice:long (n:long) { return 2 * n }
probe python.function.entry
{
	where = funcname . ":" . filename
	seen[where, pid()] <<< twice(lineno)
	last = tid()
	println(units(1), ctime(0), @count(seen[where, pid()]))
}
function units:string (n) { return sprint(n) }
"""


@pytest.mark.parametrize("word,shown", [
    ("whe|re = ", "where:string"), ("se|en[where, pid()] <", "global seen[string, long]:stats"), ("la|st = ", "global last:long"),
    ("twi|ce(lineno)", "function twice:long (n:long)"), ("ti|d()", "tid:long ()"), ("func|name .", "funcname:string"),
    ("python.func|tion.entry", 'probe python.function.entry = @python_mark("function__entry")'), ("@cou|nt", "count"),
    ("ct|ime(0)", "function ctime:string(seconds:long)"), ("spri|nt(n)", "sprint")])
def test_hover_of_stap(server, word, shown):
    at = word.replace("|", "")
    assert at in STAP_SCRIPT
    text = server.hover(STAP_SCRIPT.replace(at, word, 1), "hover.stp")
    assert text and text.split("\n")[0] == shown


def test_hover_in_markdown():
    with running(start=False) as client:
        client.request("initialize", capabilities={"textDocument": {"hover": {"contentFormat": ["markdown", "plaintext"]}}})
        client.notify("initialized")
        found = client.ask("hover", "BEGIN { trace(strl|en(\"x\")); }")
        assert found["contents"]["kind"] == "markdown"
        assert found["contents"]["value"].startswith("```d\nsize_t strlen(const char *)\n```\n")
        assert found["range"] == {"start": {"line": 0, "character": 14}, "end": {"line": 0, "character": 20}}
        assert client.stop() == 0


@pytest.mark.parametrize("text", ["BEGIN { /* str|len */ }", "BEGIN { trace(1)|; }", "|", "BEGIN { nosu|ch(); }"])
def test_hover_of_nothing(server, text):
    assert server.hover(text) is None


def test_hover_says_what_is_refused(server):
    assert "Solaris" in server.hover("BEGIN { mutex_own|ed(0); }")


# --- definition --------------------------------------------------------------------------------------

@pytest.mark.parametrize("text,name,file,line,range_text", [
    ("BEGIN { trace(ENO|ENT); }", "x.d", "errno.d", "inline int ENOENT = 2;", "ENOENT"),
    ("BEGIN { this->x = (psinf|o_t *)0; }", "x.d", "procfs.d", r"} psinfo_t;", "psinfo_t"),
    ("BEGIN { trace(cur|psinfo->pr_pid); }", "x.d", "procfs.d", r"inline psinfo_t \*curpsinfo.*", "curpsinfo"),
    ("inline int A = 1;\nBEGIN { trace(A|); }", "x.d", None, "inline int A = 1;", "A"),
    ("BEGIN { ab = 1; }\nEND { trace(a|b); }", "x.d", None, "BEGIN { ab = 1; }", "ab"),
    ("BEGIN { self->ab = 1; }\nEND { trace(self->a|b); }", "x.d", None, "BEGIN { self->ab = 1; }", "self"),
    ("probe begin { println(ctim|e(0)) }", "x.stp", "time.stp", "function ctime.*", "ctime"),
    ("probe python.gc.st|art { println(generation) }", "x.stp", "python.stp", "probe python.gc.start = .*", "python.gc.start"),
    ("probe begin { @prin|ts(0) }", "x.stp", "macros.stpm", r"@define prints\(s\).*", "prints"),
    ("function f() { return 1 }\nprobe begin { println(f|()) }", "x.stp", None, r"function f\(\).*", "f"),
    ("global a, bc\nprobe begin { b|c = 1 }", "x.stp", None, "global a, bc", "bc"),
    ("probe begin { bc = 1\n println(b|c) }", "x.stp", None, "probe begin { bc = 1", "bc"),
])
def test_definition(server, text, name, file, line, range_text):
    found = server.definition(text, name)       # overloads, and translators of a type, are definitions, too
    assert all(place[2] == range_text for place in found)
    assert [place for place in found if place[0] == file and re.fullmatch(line, place[1])], found


def test_definition_in_own_library(tmp_path):
    folder = tmp_path / "a ä%"
    folder.mkdir()
    (folder / "own.d").write_text("/* Mine. */\ninline int MINE = 5;\n")
    (folder / "own.stp").write_text("# one\nfunction mine:long () { return 5 }\n")
    with running("-L", folder) as client:
        assert client.open("BEGIN { trace(MINE); }") == []
        assert client.definition("BEGIN { trace(MI|NE); }") == [("own.d", "inline int MINE = 5;", "MINE")]
        assert client.hover("BEGIN { trace(MI|NE); }") == "inline int MINE = 5\nMine."
        assert client.definition("probe begin { println(min|e()) }", "x.stp")[0][0] == "own.stp"
        # What is saved is read again.
        (folder / "own.d").write_text("inline int MINE = 5;\ninline int MORE = 6;\n")
        client.notify("textDocument/didSave", textDocument={"uri": "file:///nowhere/x.d"})
        assert "MORE" in client.complete("BEGIN { x = |")


# --- what a client may send --------------------------------------------------------------------------

WRONG = [b"", b"{", b"null", b"[]", b"[1,2]", b"\"x\"", b"{}", b'{"jsonrpc":"2.0","id":{},"method":"shutdown"}',
         b'{"id":1.5,"method":"shutdown"}', b"\xff\xfe{}", b'{"id":1,"method":"\xc3"}', b'{"id":1,"method":"\\ud800"}',
         b"[" * 100000, b'{"a":' * 100000, b'{"id":9' + b"9" * 400 + b',"method":"x"}', b'{"id":7,"method":{}}', b'{"id":null,"method":1}']


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_wrong_json(server, body):
    server.send(body)
    while "error" not in (message := server.read()):
        pass                # diagnostics of another test's document
    assert message["error"]["code"] in (-32700, -32600) and message["id"] in (None, 7)
    assert server.hover("BEGIN { trace(strl|en(\"x\")); }")


def test_wrong_parameters(server):
    """Each method with parameters of wrong shapes: an error or nothing, and the server goes on."""
    shapes = [None, [], "x", 1, {}, {"textDocument": 1}, {"textDocument": {"uri": 5}}, {"textDocument": {"uri": "file:///nowhere/x.d"}},
              {"textDocument": {"uri": "file:///nowhere/x.d"}, "position": {"line": -1, "character": 0}},
              {"textDocument": {"uri": "file:///nowhere/x.d"}, "position": {"line": "0", "character": 0}},
              {"textDocument": {"uri": "file:///nowhere/x.d", "version": "x"}, "contentChanges": [1, {}, {"text": 5}, {"range": 1, "text": ""},
               {"range": {"start": {"line": 5, "character": 5}, "end": {"line": 0, "character": 0}}, "text": "a"}]},
              {"textDocument": {"uri": "a\0b", "text": "x", "version": 1, "languageId": 7}}]
    methods = re.findall(r'^METHOD\("([\w/]+)",\s*(\w+)', (harness.TOP / "src/cmd/lsp/methods.def").read_text(), re.M)
    server.open("BEGIN { trace(1); }")
    for method, kind in methods:
        if method in ("initialize", "shutdown", "exit", "textDocument/didClose"):
            continue
        for shape in shapes:
            if kind == "NOTIFICATION":
                server.send({"method": method, "params": shape})
            else:
                server.ids += 1
                server.send({"id": server.ids, "method": method, "params": shape})
                assert server.response(server.ids)["error"]["code"] == -32602, (method, shape)
    assert server.hover("BEGIN { trace(strl|en(\"x\")); }")


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length: 1x\r\n\r\n{", b"Content-Length:\r\n\r\n",
                                  b"Content-Length: 99999999999999999999\r\n\r\n", b"x" * 100000, b"Content-Length: 5\r\n\r\n{}",
                                  b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"])
def test_wrong_frames(data):
    with running(start=False) as client:
        with contextlib.suppress(BrokenPipeError):
            client.write(data)
            client.process.stdin.close()
        assert client.read() is None
        assert client.process.wait(harness.TIMEOUT_S) == 1
        assert client.process.stderr.read().startswith(b"dtap lsp: ")


def test_messages_in_pieces():
    with running(start=False) as client:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode()
        for byte in b"Content-Type: x; charset=utf-8\r\ncontent-length:  %d\r\n\r\n%s" % (len(body), body):
            client.write(bytes([byte]))
        assert client.response(1)["result"]["serverInfo"]["name"] == "dtap lsp"
        client.send({"id": 2, "method": "shutdown"})
        client.send({"method": "exit"})
        assert client.response(2)["result"] is None
        assert client.process.wait(harness.TIMEOUT_S) == 0


def test_strange_texts(server):
    for text in ("\0", "BEGIN { \0 }", "BEGIN {" * 5000, "(" * 20000, "probe " * 5000, "\ufeffBEGIN { trace(1); }", "@" * 3000, "/*", '"', "#",
                 "@define a %( @a @a %)\nprobe begin { @a }", "x" * 100000):
        for name in ("strange.d", "strange.stp"):
            for diagnostic in server.open(text, name):
                assert diagnostic["severity"] in (ERROR, WARNING, INFORMATION) and diagnostic["message"], (text[:40], diagnostic)


# --- what it does to the machine ---------------------------------------------------------------------

def test_typing(server):
    """Scripts come letter by letter; now and then the editor wants to know something."""
    rnd = random.Random(9)
    everything = golden("d/run", "d") + golden("stp/run", "stp")
    for path in everything if harness.NIGHTLY else rnd.sample(everything, 12):
        text = path.read_text()[:1500]
        stops = set(rnd.sample(range(len(text)), min(3, len(text))))
        for end in range(len(text)):
            uri = server.open(text[:end], "typed" + path.suffix, wait=end in stops)
            if end in stops:
                uri = f"file:///nowhere/typed{path.suffix}"
                for what in ("completion", "hover", "definition"):
                    assert "result" in server.request(f"textDocument/{what}", textDocument={"uri": uri}, position=position(text[:end]))


@pytest.mark.skipif(not harness.shutil.which("strace"), reason="strace is not installed")
def test_runs_and_reads_nothing_of_others(tmp_path):
    """No program is run, no process is looked at, nothing is loaded."""
    log = tmp_path / "log"
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}    # it would trace itself
    with running(wrapper=["strace", "-f", "-qq", "-o", log, "-e", "trace=execve,execveat,ptrace,bpf,perf_event_open,process_vm_readv,"
                          "openat,socket,connect,kill"], env=env) as client:
        client.open("python$target:::function-entry, pid$target::f:entry, nosuch:::x { system(\"true\"); trace(curpsinfo->pr_pid); }")
        client.open('probe process("python3").mark("line") { system("true"); print_ubacktrace() }', "x.stp")
        client.hover("python*:::function-entry { self->x| = 1; }")
    calls = [line.split(None, 1)[1] for line in log.read_text().splitlines()]
    executed = [call for call in calls if call.startswith("execve")]
    assert len(executed) == 1, executed
    assert not [call for call in calls if re.match(r"(ptrace|bpf|perf_event_open|process_vm_readv|socket|connect|kill)\(", call)]
    assert not [call for call in calls if re.search(r'"/proc/\d+', call)]
