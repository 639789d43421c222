"""Stacks and names of addresses as values of SystemTap scripts: kept, joined and printed later."""
import subprocess

import pytest

import harness

PROGRAM = """#include <stdio.h>
__attribute__((noipa)) int leaf(const char *text) { return text[0]; }
__attribute__((noipa)) int left(const char *text) { return leaf(text) + 1; }
__attribute__((noipa)) int right(const char *text) { return leaf(text) + 2; }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 3; i++)
		sum += left("plain");
	sum += right("\\0017,1\\002 \\001zz");
	return sum == 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("places")
    (folder / "places.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O0", "-static", "-no-pie", folder / "places.c", "-o", folder / "places"], check=True)
    return folder / "places"


def run(program, script):
    result = harness.stap("-e", f'probe process("{program}").function("leaf") {script}', "-c", str(program))
    assert result.code == 0 and not result.err, result
    return result.out


@pytest.mark.needs_bpf
@pytest.mark.parametrize("kept, shown", [
    ("ubacktrace()", "print_ustack({})"), ("ubacktrace()", "print_usyms({})"), ("ubacktrace()", "print(sprint_usyms({}))"),
    ("ubacktrace()", "println({})"), ("sprint_ubacktrace()", "print({})"), ("usymname(uaddr())", 'printf("%s\\n", {})'),
    ("usymdata(uaddr())", "println({})"), ("umodname(uaddr())", "println({})"), ("ucallers(1)", "println({})"),
    ("usymname(ustack(1))", 'printf("%-20s|\\n", {})'), ("sprint_ubacktrace()", "print(sprint_usyms({}))"),
])
def test_kept(program, kept, shown):
    """What is printed from a variable, an element, and through a function is what is printed at once."""
    at_once = run(program, "{ " + shown.format(kept) + " }").splitlines()
    later = run(program, f"""{{ x = {kept} a[n++] = x b = "" . x {shown.format("x")} last = b }}
        global a, n, last
        function through(s) {{ return s }}
        probe end {{ println("--") foreach (i+ in a) {shown.format("through(a[i])")} println("--") {shown.format("last")} }}""")
    first, elements, one = later.split("--\n")
    # Where the traced program is at its end the names are still known.
    assert first.splitlines() == elements.splitlines() == at_once
    assert at_once[-len(one.splitlines()):] == one.splitlines()


@pytest.mark.needs_bpf
def test_stacks_as_keys(program):
    """Equal stacks are one key; a stack can be compared with another and with no text."""
    out = run(program, """{
            n[ubacktrace()] <<< 1
            same += last == ubacktrace()
            none += last == ""
            last = ubacktrace()
        }
        global n, last, same, none
        probe end {
            printf("%d %d\\n", same, none)
            foreach (s in n-) { printf("%d\\n", @count(n[s])) print_ustack(s) }
        }""")
    lines = out.splitlines()
    assert lines[:2] == ["2 1", "3"], out
    names = [line.split(" : ")[1].split("+")[0] if " : " in line else line for line in lines[2:]]
    assert names.index("left") < names.index("1") < names.index("right"), out


@pytest.mark.needs_bpf
def test_texts_of_the_program(program):
    """What looks like a mark in a string of the traced program is printed as it is."""
    out = run(program, '{ println(user_string($text), usymname(uaddr())) }')
    assert out.splitlines() == ["plainleaf"] * 3 + ["\x017,1\x02 \x01zzleaf"], out


@pytest.mark.parametrize("use, why", [
    ('if (usymname(uaddr()) == "leaf") println(1)', "only stacks can be compared"),
    ("n[usymname(uaddr())]++ foreach (k in n) println(k)", "several addresses have one name"),
    ("println(strlen(sprint_ubacktrace()))", "make it an argument of print"),
    ("x = ubacktrace() println(substr(x, 0, 3))", "make it an argument of print"),
    ('x = usymname(uaddr()) if (x =~ "l.*") println(1)', "make it an argument of print"),
    ("x = ubacktrace() println(through(x) < x)", "make it an argument of print"),
    ('println(sprintf("%.3s", usymname(uaddr())) . "")', "a width or precision"),
    ("error(usymname(uaddr()))", "make it an argument of print"),
    ('print_usyms("0x1234 0x5678")', "keep ubacktrace() in a variable"),
    ("println(@entry(1), usymname(uaddr()) in n)", "several addresses have one name"),
])
def test_refused(program, use, why):
    script = f'''global n function through(s) {{ return s }}
        probe process("{program}").function("leaf").return {{ n[""] = 1 {use} }}'''
    result = harness.stap("-p2", "-e", script)
    assert result.code == 1 and "known only where they are printed" in result.err and why in result.err, result
