"""-F: the first clause of an entry indents, the last clause of a return ends it (dtrace(1), -F)."""
import pytest

SCRIPT = """
python$target:::function-entry, python$target:::function-return
/copyinstr(arg1) == "outer" || copyinstr(arg1) == "inner"/ { trace(copyinstr(arg1)); }
python$target:::function-return /copyinstr(arg1) == "inner"/ { trace("second"); }
"""
FUNCTION = "_PyEval_EvalFrameDefault"     # where 3.9 has both markers
PROGRAM = """
def outer():
    inner()
def inner():
    pass
outer()
"""


@pytest.mark.needs_bpf
@pytest.mark.interps("3.9")
def test_flowindent(dtrace, interp, tmp_path):
    script = tmp_path / "flow.d"
    script.write_text(SCRIPT)
    result = dtrace("-F", "-s", script, "-c", interp.command(PROGRAM))
    assert result.code == 0, result
    title, *lines = [line for line in result.out.splitlines() if line.strip()]
    assert title.split() == ["CPU", "FUNCTION"]
    # Behind the CPU: the arrow, as far to the right as the call is deep, then what the clause traced.
    assert [(len(line[4:]) - len(line[4:].lstrip()), line[4:].split()) for line in lines] == [
        (1, ["->", FUNCTION, "outer"]),
        (3, ["->", FUNCTION, "inner"]),
        (4, ["|", FUNCTION + ":function-return", "inner"]),
        (3, ["<-", FUNCTION, "second"]),
        (1, ["<-", FUNCTION, "outer"]),
    ], result
