"""Conversions whose output depends on the machine: against what Python finds there."""
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import time

import pytest

import harness

pytestmark = pytest.mark.needs_bpf


@pytest.mark.parametrize("port", [22, 80, 443])
def test_service(dtrace, port):
    """%P: a port by the name of its service."""
    try:
        name = socket.getservbyport(port)
    except OSError:
        pytest.skip("/etc/services does not know it")
    assert dtrace("-q", "-n", 'BEGIN { printf("[%%P]", %d); exit(0); }' % port).out == f"[{name}]"


def test_host(dtrace):
    """%I: an address by the name of its host."""
    hosts = pathlib.Path("/etc/hosts")
    found = hosts.exists() and re.search(r"^127\.0\.0\.1\s+(\S+)", hosts.read_text(), re.M)
    if not found:
        pytest.skip("/etc/hosts does not know 127.0.0.1")
    assert dtrace("-q", "-n", 'BEGIN { printf("[%I]", "127.0.0.1"); exit(0); }').out == f"[{found[1]}]"


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_time(dtrace, zone, monkeypatch):
    """%Y and %T: local time, as strftime has it."""
    seconds = 1012745045
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    then = time.localtime(seconds)
    want = [f"{time.strftime('%Y %b', then)} {then.tm_mday:2} {time.strftime('%H:%M:%S', then)}",
            time.strftime("%a, %d %b %Y %H:%M:%S %Z", then)]
    result = dtrace("-q", "-n", 'BEGIN { printf("%%Y|%%T|%%25Y", %d, %d, %d); exit(0); }' % ((seconds * 10**9,) * 3))
    monkeypatch.undo()
    time.tzset()
    assert result.out == f"{want[0]}|{want[1]}|{want[0]:>25}", result


FLOATS = r"""
#include <sys/sdt.h>
int main(int argc, char **argv)
{
	volatile double d = 1.0 / 3 * argc;
	volatile float f = -2.5f * argc;
	DTRACE_PROBE3(floats, both, d, f, argc);
	return 0;
}
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs a C compiler")
def test_floating_point_arguments(dtrace, tmp_path):
    """Of a marker, by its note's types; the bits are arg0 and arg1."""
    subprocess.run(["gcc", "-O1", "-I", harness.TOP / "include", "-x", "c", "-", "-o", tmp_path / "floats"],
                   input=FLOATS, text=True, check=True)
    result = dtrace("-q", "-n", r"""floats$target:::both {
        printf("%.15f %g %d %x ", args[0], args[1], args[2], arg0);
        print(args[1]);
    }""", "-c", tmp_path / "floats")
    bits = struct.unpack("<Q", struct.pack("<d", 1 / 3))[0]
    assert result.out == f"{1 / 3:.15f} -2.5 1 {bits:x} float -2.5000000e+00", result


PRINTED = """
enum color { RED, GREEN = 5 };
struct in { short s; char c; };
struct all {
    int a, zero;
    unsigned int b:3, d:9;
    char name[6];
    unsigned char bytes[3];
    uint64_t big;
    struct in in, none, two[2];
    void *p, *null;
    enum color e, red;
    union { int i; char first; } u;
};
BEGIN
{
    this->a = (struct all *)alloca(sizeof(struct all));
    this->a->a = -1;
    this->a->b = 5;
    this->a->name[0] = 'h';
    this->a->name[1] = 'i';
    this->a->bytes[1] = 200;
    this->a->big = 18446744073709551615;
    this->a->in.s = -2;
    this->a->two[1].c = 'z';
    this->a->p = (void *)0x10;
    this->a->e = GREEN;
    this->a->u.i = 65;
    print(this->a);
    this->n = (int *)alloca(4);
    print(this->n);
    print(&this->a->two[1]);
    print(&this->a->none);
    exit(0);
}
"""


def test_print_of_a_pointer(dtrace):
    """As in DTrace for Linux: the address and the object as C initializes it, without what is zero."""
    result = dtrace("-q", "-n", PRINTED)
    lines = [re.sub("^0x[0-9a-f]+ = ", "P = ", line.strip()) for line in result.out.splitlines() if line.strip()]
    object_ = """(struct all) {
        .a = (int)-1, .b = (unsigned int)5,
        .name = (char [6]) [ (char)'h', (char)'i', ],
        .bytes = (unsigned char [3]) [ (unsigned char)200, ],
        .big = (uint64_t)18446744073709551615,
        .in = (struct in) { .s = (short)-2, },
        .two = (struct in [2]) [ (struct in) { .c = (char)'z', }, ],
        .p = (void *)0x10, .e = (enum color)GREEN,
        .u = (union) { .i = (int)65, .first = (char)'A', },
        }"""
    want = f"P = * {object_} P = * (int)0 P = * (struct in) {{ .c = (char)'z', }} P = * (struct in) {{ }}"
    assert result.code == 0 and " ".join(lines) == " ".join(want.split()), result
    assert "\n" + 45 * " " + ".a = (int)-1,\n" in result.out, result
