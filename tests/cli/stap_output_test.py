"""Where stap's output goes: much of it at once, -b, -k; and what -c must be for points that name no program."""
import os
import re
import struct

import pytest

import harness

LINE = "".join(chr(c) for c in range(ord("A"), ord("Z") + 1)) + "\n"
LOOP = """probe begin {
	for (line = 0; line < 6000; line++) {
		for (c = 65; c <= 90; c++)
			print_char(c)
		print_char(10)
	}
	exit()
}"""


@pytest.mark.needs_bpf
def test_loop_that_prints():
    """What a begin probe prints in a loop is more than the buffer, and all there, and exit() is heard."""
    result = harness.stap("-D", "MAXACTION=1000000", "-e", LOOP)
    assert result.code == 0 and result.out == LINE * 6000 and not result.err, (result.code, len(result.out), result.err)


@pytest.mark.needs_bpf
def test_bulk(tmp_path):
    """-b: heads with a sequence of numbers, between them the output."""
    result = harness.stap("-b", "-o", str(tmp_path / "out"), "-D", "MAXACTION=1000000", "-e", LOOP.replace("6000", "600"))
    assert result.code == 0, result
    data, text, next_number = (tmp_path / "out_0").read_bytes(), b"", 0
    while data:
        number, size = struct.unpack("=4xII", data[:12])
        assert number == next_number
        text, data, next_number = text + data[12:12 + size], data[12 + size:], next_number + 1
    assert text.decode() == LINE * 600


def test_kept_folder(tmp_path):
    result = harness.stap("-k", "-p1", "-e", "probe begin { exit() }", env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin"})
    folder = re.fullmatch(r'Keeping temporary directory "(.*)"\n', result.err)[1]
    assert os.path.dirname(folder) == str(tmp_path)
    assert "probe begin" in (tmp_path / os.path.basename(folder) / "tree").read_text()


@pytest.mark.needs_root
@pytest.mark.parametrize("command, flaw", [("ls || true", "illegal characters"), ("ls $NOTHING_SUCH", "undefined shell variables"),
                                           ("ls `true`", "command substitutions"), ('ls "text', "shell syntax errors")])
def test_command_of_unnamed_process(command, flaw):
    """Man page stapprobes, "process": without a path the command's program is meant, so it must be plain which that is."""
    result = harness.stap("-p2", "-e", 'probe process.function("main") { next }', "-c", command)
    assert result.code == 1 and re.search(f"semantic error: invalid -c command .*contains {flaw}", result.err), result


@pytest.mark.needs_root
def test_program_by_name(tmp_path, monkeypatch):
    """In PATH, in the current folder, and as the command of -c."""
    (tmp_path / "here").mkdir()
    (tmp_path / "p.c").write_text("int f(void) { return 1; }\nint main(void) { return f() - 1; }\n")
    harness.run(["gcc", "-g", "-O0", "-o", str(tmp_path / "here/namedprogram"), str(tmp_path / "p.c")])
    script = 'probe process("namedprogram").function("f") { println("f") }'
    monkeypatch.chdir(tmp_path)
    assert harness.stap("-p2", "-e", script).code == 1
    assert harness.stap("-p2", "-e", script, "-c", str(tmp_path / "here/namedprogram")).code == 0
    monkeypatch.chdir(tmp_path / "here")
    assert harness.stap("-p2", "-e", script).code == 0


def test_number_of_buckets():
    """STP_MAX_BUCKETS of SystemTap's runtime is 128, with what is below and above."""
    script = "global a probe begin {{ a <<< 1 print(@hist_linear(a, 0, {}, {})) exit() }}"
    for high, width in [(1500, 10), (1500, -1), (100, 0)]:
        result = harness.stap("-p4", "-e", script.format(high, width))
        assert result.code == 1 and "Number of buckets" in result.err, result
    assert harness.stap("-p3", "-e", script.format(1250, 10)).code == 0


@pytest.mark.needs_root
def test_declared_elsewhere(tmp_path):
    """A structure that one unit declares and another has."""
    (tmp_path / "a.c").write_text("struct pair; int first(struct pair *p);\nint show(struct pair *p) { return first(p); }\n")
    (tmp_path / "b.c").write_text("struct pair { int x, y; } one = { 3, 4 };\nint first(struct pair *p) { return p->x; }\n"
                                  "int show(struct pair *p);\nint main(void) { return show(&one) - 3; }\n")
    harness.run(["gcc", "-g", "-O0", "-o", str(tmp_path / "p"), str(tmp_path / "a.c"), str(tmp_path / "b.c")])
    result = harness.stap("-e", f'probe process("{tmp_path}/p").function("show") {{ println($p->x * $p->y) }}', "-c", str(tmp_path / "p"))
    assert result.code == 0 and result.out == "12\n", result


@pytest.mark.needs_root
def test_pointers_that_nobody_reads(tmp_path):
    """Globals that are printed at the end: what points to something as an address."""
    (tmp_path / "a.c").write_text("int main(int argc, char **argv) { return argc - 1 + !argv; }\n")
    harness.run(["gcc", "-g", "-O0", "-o", str(tmp_path / "p"), str(tmp_path / "a.c")])
    result = harness.stap("-e", f'probe process("{tmp_path}/p").function("main") {{ a = $argv; b = $argc }} global a, b', "-c",
                          str(tmp_path / "p"))
    assert result.code == 0 and re.fullmatch(r"a=0x[0-9a-f]+\nb=1\n", result.out), result


def test_embedded_code():
    """With -g it is parsed, and refused behind that; without, at once."""
    script = "%{ int x; %} function f:long() %{ x %} probe begin { %{ y %} println(%{ 42 %}) }"
    assert harness.stap("-g", "-p1", "-e", script).code == 0
    result = harness.stap("-g", "-p2", "-e", script)
    assert result.code == 1 and "embedded code is not supported at <input>:1:1\n" in result.err, result
    result = harness.stap("-p1", "-e", script)
    assert result.code == 1 and "need stap -g" in result.err and ":1:1\n" in result.err, result


def test_guru_function():
    assert harness.stap("-p2", "-e", 'probe begin { printk(0, "x") }').code == 1
    assert harness.stap("-g", "-p2", "-e", 'probe begin { printk(0, "x") }').code == 0


@pytest.mark.needs_bpf
def test_where_an_error_was_called():
    """An error() of a function tells the call of that function; its text alone is caught."""
    result = harness.stap("-e", 'function f() { error("bad") }\nprobe begin { try { f() } catch (m) { println(m) } f() }')
    assert result.out == "bad\n" and "ERROR: bad near identifier 'f' at <input>:2:52\n" in result.err, result


@pytest.mark.parametrize("point", ["syscall.open.return.maxactive(10)", "syscall.open.return.maxact*(10)", "syscall.sysctl"])
def test_points_of_system_calls(point):
    """Man page stapprobes: a return's .maxactive, which needs no room here; a call that newer kernels only know by number."""
    assert harness.stap("-p2", "-w", "-e", f"probe {point} {{ println(name) }}").code == 0


def test_switch_file(tmp_path):
    """What is printed behind switch_file() is in the next file; without -o nothing happens."""
    script = 'probe begin { println("one") switch_file() println("two") } probe end { println(3) switch_file() println(4) }'
    script += " probe timer.ms(1) { exit() }"
    result = harness.stap("-o", str(tmp_path / "out"), "-e", script)
    assert (result.code, result.out, result.err) == (0, "", "")
    texts = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert texts == {"out": "one\n", "out.1": "two\n3\n", "out.2": "4\n"}
    assert harness.stap("-e", script).out == "one\ntwo\n3\n4\n"
