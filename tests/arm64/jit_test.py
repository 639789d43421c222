"""The compiler for aarch64: its encoder beside the assembler, its programs beside the interpreter's, under qemu-user.

The runner of tests/vm is built by a cross compiler, with the compiler and the interpreter alone: no library of that machine
is needed.  `make check-arm64` runs everything else.
"""
import fcntl
import os
import re
import shutil
import struct
import sys

import pytest

import harness

SRC, TESTS = harness.TOP / "src", harness.TOP / "tests"
GCC, AS, QEMU = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-as", "qemu-aarch64"


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed (tools/need test)")


def test_words_are_the_assemblers(tmp_path):
    needs(AS)
    rows = re.findall(r'CHECK\(0x([0-9a-f]{8}), "([^"]+)"', (TESTS / "unit/arch/a64_test.c").read_text())
    assert len(rows) > 80
    source, made, words = (tmp_path / name for name in ("a.s", "a.o", "a.bin"))
    source.write_text("".join(f"{text}\n" for _, text in rows))
    for argv in [AS, "-march=armv8.5-a", source, "-o", made], ["aarch64-linux-gnu-objcopy", "-Obinary", "-j.text", made, words]:
        result = harness.run(argv)
        assert result.code == 0, result
    assembled = [f"{word:08x}" for word, in struct.iter_unpack("<I", words.read_bytes())]
    assert [(word, text) for word, (_, text) in zip(assembled, rows, strict=True)] == rows


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    needs(GCC, QEMU)
    folder = tmp_path_factory.getbasetemp()
    made = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "arm64-run"
    with open(f"{made}.lock", "w") as lock:     # all workers have one
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            build(made)
    return made


def build(made):
    # All of the engine but its machine-independent stub for machines that have no compiler.
    engine = [path for path in sorted((SRC / "vm").glob("*.c")) if path.name not in ("code_none.c", "drain.c", "reader.c")]
    result = harness.run([GCC, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror", "-static", "-I", SRC, "-I",
                          harness.TOP / "include", "-idirafter", "/usr/include", TESTS / "vm/run.c", TESTS / "vm/asm.c",
                          TESTS / "arm64/no_kernel.c", *engine, SRC / "arch/codebuf.c", SRC / "arch/aarch64/enc.c",
                          SRC / "arch/aarch64/jit.c", "-o", f"{made}.new"], timeout=300)
    assert result.code == 0, result
    os.rename(f"{made}.new", made)


def runs(runner, path):
    result = harness.run([QEMU, runner, path], timeout=300)
    assert result.code == 0, result
    cases, compiled = map(int, re.search(r"^(\d+) cases, (\d+) programs compiled", result.out, re.M).groups())
    assert cases and (compiled or "refused" in str(path)), result


@pytest.mark.parametrize("path", sorted((TESTS / "vm").glob("*.vm")), ids=lambda path: path.stem)
def test_programs(runner, path):
    runs(runner, path)


def test_arithmetic(runner, tmp_path):
    made = tmp_path / "alu.vm"
    made.write_text(harness.run([sys.executable, TESTS / "vm/alu.py"]).out)
    runs(runner, made)
