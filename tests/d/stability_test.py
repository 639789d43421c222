"""The report of -v: the guide's chapter on stability."""
import pytest

pytestmark = pytest.mark.needs_root

REPORT = """
Stability attributes for description {}:

\tMinimum Probe Description Attributes
\t\tIdentifier Names: {}
\t\tData Semantics:   {}
\t\tDependency Class: {}

\tMinimum Statement Attributes
\t\tIdentifier Names: {}
\t\tData Semantics:   {}
\t\tDependency Class: {}

"""


@pytest.mark.parametrize("text, descs, stmts", [
    ("dtrace:::BEGIN { trace(timestamp); }", "Stable/Stable/Common", "Stable/Stable/Common"),
    ("BEGIN { trace((int)curthread); }", "Stable/Stable/Common", "Stable/Private/Common"),
    ("profile:::tick-1s { trace(1); }", "Evolving/Evolving/Common", "Stable/Stable/Common"),
    ("syscall:::entry { trace(htonl(arg0)); }", "Evolving/Evolving/Common", "Evolving/Evolving/Common"),
    ("syscall::read:entry { trace(args[1]); }", "Unstable/Unstable/ISA", "Unstable/Unstable/ISA"),
    ("BEGIN, syscall:::entry /uid == 0/ { @[execname] = count(); }", "Evolving/Evolving/Common",
     "Stable/Stable/Common"),
])
def test_report(dtrace, text, descs, stmts):
    result = dtrace("-e", "-v", "-n", text)
    assert result.code == 0 and result.out == REPORT.format(text.split("{")[0].split("/")[0], *descs.split("/"), *stmts.split("/")), result


def test_each_program_for_itself(dtrace):
    result = dtrace("-e", "-v", "-n", "BEGIN { trace(1); }", "-n", "tick-1s { trace(1); }")
    assert result.out.count("Stability attributes") == 2 and result.out.count("Names: Evolving") == 1, result
