"""gc, import and audit on every interpreter, against what the traced process says of itself.

Each program in data/ writes its truth, as gc.callbacks or an audit hook gives it, to a file.  It brackets
what counts with the audit events dtap.begin and dtap.end, so that the interpreter's own start and end,
which hooks do not see, stay out.
"""
import collections
import pathlib

import pytest

DATA = pathlib.Path(__file__).parent / "data"

pytestmark = pytest.mark.needs_bpf

BRACKETS = """
int on;
python$target:::audit /copyinstr(arg0) == "dtap.begin"/ { on = 1; }
python$target:::audit /copyinstr(arg0) == "dtap.end"/ { on = 0; }
"""


def trace(dtrace, interp, tmp_path, program, probes):
    """What the script printed and what the program says, each a list of lines."""
    script = tmp_path / "script.d"
    script.write_text(BRACKETS + probes)
    truth = interp.dir / "truth"
    result = dtrace("-q", "-s", script, "-c", interp.command(DATA / program, interp.inside(truth)))
    assert result.code == 0 and result.err == "", result
    return result.out.split("\n")[:-1], truth.read_text(encoding="utf-8").splitlines(), result


def test_gc(dtrace, interp, tmp_path):
    got, want, result = trace(dtrace, interp, tmp_path, "gc_truth.py", """
        python$target:::gc-start /on/ { printf("start %d\\n", arg0); }
        python$target:::gc-done /on/ { printf("done %d\\n", arg0); }
    """)
    assert len(want) > 10 and got == want, result


def test_import(dtrace, interp, tmp_path):
    got, want, result = trace(dtrace, interp, tmp_path, "import_truth.py", """
        python$target:::import-find-load-start /on/ { printf("start %s\\n", copyinstr(arg0)); }
        python$target:::import-find-load-done /on/ { printf("done %s %d\\n", copyinstr(arg0), arg1); }
    """)
    starts = [line for line in got if line.startswith("start ")]
    assert len(starts) > 5 and starts == [line for line in want if line.startswith("start ")], result

    # Every start has its done, nested like brackets; found is 0 for what is not there.
    missing = {line.split()[1] for line in want if line.startswith("failed ")}
    opened = []
    for line in got:
        what, name, *found = line.split()
        if what == "start":
            opened.append(name)
        else:
            assert opened.pop() == name, result
            assert found == [str(int(name not in missing))], (name, result)
    assert not opened, result
    assert "xml" in [line.split()[1] for line in starts], "the parent of xml.dom"


def test_audit(dtrace, interp, tmp_path):
    got, want, result = trace(dtrace, interp, tmp_path, "audit_truth.py", """
        python$target:::audit /on && copyinstr(arg0) != "dtap.begin"/ { printf("%s\\n", copyinstr(arg0)); }
    """)
    assert len(want) > 55 and collections.Counter(got) == collections.Counter(want), result
    assert got == want, result
