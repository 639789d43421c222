"""Programs in which jumps are farther than an instruction of BPF can say (asm.c)."""
import pytest

pytestmark = pytest.mark.needs_bpf

ELEMENTS = 450


def script(n):
    work = " ".join(f"a[{k}] = {k}; a[{k}] += 1;" for k in range(n))
    values = ", ".join(f"a[{k}]" for k in range(n))
    return f"int a[int]; BEGIN {{ {work} printf(\"{' '.join(['%d'] * n)}\\n\", {values}); exit(0); }}"


def test_far_jumps(dtrace, tmp_path):
    path = tmp_path / "long.d"
    path.write_text(script(ELEMENTS))
    result = dtrace("-qs", path)
    assert result.code == 0 and result.out.split() == [str(k + 1) for k in range(ELEMENTS)], result


@pytest.mark.interps("3.9", "3.13")
def test_far_jumps_inside(dtrace, interp, tmp_path):
    """The same program inside a process: what its machine code does must be the same."""
    body = script(ELEMENTS).replace("BEGIN {", "python$target:::function-entry /copyinstr(arg1) == \"f\"/ {")
    path = tmp_path / "long.d"
    path.write_text(body)
    result = dtrace("-x", "place=target", "-qs", path, "-c", interp.command("def f(): pass\nf()"))
    assert result.code == 0 and result.out.split() == [str(k + 1) for k in range(ELEMENTS)], result
