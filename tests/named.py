#!/usr/bin/python3
"""Which names of dtap's tables no test runs.

	[DTAP_BUILD=build] named.py [KIND ...]

The names are told by the programs themselves (--help, -l, --dump-functions, --dump-probe-aliases), or are those of the .def
files.  A name is run when the text of a test that runs programs has it in the form in which it is used (a function with its
parenthesis, an option behind -x): a golden script of run/ or guide/, an IR program, a string in a test in Python, a
command of cli/*.txt; comments and what documents a test do not count.  Where a test makes its cases of such a table itself, DRIVEN says what those are.
named.exempt has what cannot be run, each name with its reason.
"""
import ast
import functools
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent
sys.path[:0] = [str(HERE), str(HERE / "cli"), str(HERE / "hostile")]

import harness  # noqa: E402


# --- the text of tests ------------------------------------------------------------------------------------------------

PYTHON = ("cli/*.py", "d/*.py", "python/*.py", "agent/*.py", "hostile/*.py", "lib/*.py", "kernels/*.py", "generate/*.py",
          "soak/*.py", "target/*.py", "sdt/*.py", "golden.py", "harness.py", "ways.py")
SCRIPTS = {"D": ("d/run/*.d", "d/guide/*/*.d", "d/data/*.d", "python/data/*.d", "../share/scripts/*.d", "../share/commands/*.d"),
           "SystemTap": ("stp/run/*.stp", "python/data/*.stp", "../doc/howto/*.stp"),
           "IR": ("ir/*.ir",), "vm": ("vm/*.vm",), "C": ("ir/*.c", "vm/*.c", "unit/*/*.c")}
COMMENTS = {"D": r"/\*.*?\*/|//[^\n]*", "SystemTap": r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", "IR": r"^#[^:][^\n]*", "vm": r"^#[^\n]*",
            "C": r"/\*.*?\*/|//[^\n]*"}


def files(patterns):
    return [path for pattern in patterns for path in sorted(HERE.glob(pattern)) if path.is_file()]


def directives(text):
    """What a golden test's comments have for the command line."""
    return "\n".join(re.findall(r"@@(?:options|script-args): *(.*?) *(?:\*/)?$", text, re.M))


def strings(path):
    """All strings of a program in Python, but those that document something; of f-strings what is fixed."""
    tree = ast.parse(path.read_text())
    documents = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list)
                 and node.body and isinstance(node.body[0], ast.Expr)}
    return "\n".join(re.sub(r"/\*.*?\*/", "", node.value, flags=re.S) for node in ast.walk(tree)
                     if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents)


@functools.lru_cache(maxsize=None)
def tests_in_python():
    commands = "\n".join(re.findall(r"^\$ (.*)", "\n".join(path.read_text() for path in files(("cli/*.txt",))), re.M))
    return "\n".join([*map(strings, files(PYTHON)), commands])


@functools.lru_cache(maxsize=None)
def text_of(language):
    """All that tests run in a language, and what tests in Python have for strings."""
    found = []
    for path in files(SCRIPTS.get(language, ())):
        text = path.read_text(errors="replace")
        found += [re.sub(COMMENTS[language], "", text, flags=re.S | re.M), directives(text)]
    return "\n".join([*found, *DRIVEN.get(language, lambda: [])(), "" if language in ("C", "vm") else tests_in_python()])


@functools.lru_cache(maxsize=None)
def outputs():
    """What tests say must come out: of goldens, too."""
    found = [tests_in_python()]
    for path in files((*SCRIPTS["D"], *SCRIPTS["SystemTap"], "d/run/*.out", "d/guide/*/*.out")):
        found.append(path.read_text(errors="replace"))
    return "\n".join([*found, text_of("C"), text_of("IR")]).replace("\\", "")


def driven_d():
    """hostile/memory_test.py makes a case of each function and argument."""
    import memory_test
    return [case.code for case in memory_test.d_cases()]


def driven_stap():
    import memory_test
    return [call.code for call in memory_test.stap_calls("library")]


DRIVEN = {"D": driven_d, "SystemTap": driven_stap}


# --- the names --------------------------------------------------------------------------------------------------------

def rows(path, macro):
    """The first words of rows MACRO(word, ...) of a table; those that only say why there is no such thing are left out."""
    text = re.sub(r"/\*.*?\*/", "", (TOP / "src" / path).read_text(), flags=re.S)
    return [name for name, rest in re.findall(rf'^{macro}\("?([\w-]+)"?([^\n]*)', text, re.M) if not re.search(r"\bNONE\(|\bGURU\(", rest)]


def told(pattern, *command):
    done = subprocess.run([harness.BUILD / command[0], *command[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return list(dict.fromkeys(re.findall(pattern, done.stdout, re.M)))


def options_run():
    """What cli/stap_options_test.py takes of the table."""
    import stap_options_test
    return stap_options_test.names()


def calls_of_machine():
    """Names that cli/syscalls_test.py traces, as both languages have them."""
    import syscalls_test
    return syscalls_test


def tapset_functions():
    """Without those that are only refused, which cli/tapset_test.py looks at."""
    text = (TOP / "src/stp/functions.def").read_text()
    refused = set(re.findall(r'^STP_FUNC\((\w+)[^\n]*(?:NONE\("|GURU\()', text, re.M))
    return [name for name in listed_functions() if name not in refused and name[0] != "_"]


def listed_functions():
    return told(r"^([a-zA-Z]\w*):", "stap", "--dump-functions")


def tapset_aliases():
    return [name for name in told(r"^(\S+) \+?= ", "stap", "--dump-probe-aliases") if not name.startswith("_")]


def aliases_run():
    """The aliases of system calls that calls.c makes: the test compares each call and each return."""
    module = calls_of_machine()
    return [name for name, calls in module.aliases().items() if set(calls) <= module.made()]


def limits():
    return re.findall(r"^STP_LIMIT\((\w+)", (TOP / "src/stp/limits.def").read_text(), re.M)


def environment():
    found = set()
    for path in (TOP / "src").rglob("*.[ch]"):
        text = path.read_text()
        found |= set(re.findall(r'getenv\("(\w+)"\)', text)) | set(re.findall(r'#define ABI_\w*ENV\w* "(\w+)"', text))
    return sorted(found)


def texts(path, pattern):
    """What a table of messages says, from a source: the longest part without conversions of each."""
    return [max(re.split(r"%\w+", text), key=len).strip() for text in re.findall(pattern, (TOP / "src" / path).read_text())]


def options(command):
    """Of --help: letters and long names."""
    help_ = subprocess.run([harness.BUILD / command[0], *command[1:], "--help"], capture_output=True, text=True).stdout
    found = []
    for line in help_.splitlines():
        head = re.match(r" {1,6}(-.*?)(?:  |$)", line)
        found += re.findall(r"(?:^|[ ,])(--[\w-]+|-\w+)", head[1]) if head else []
    return list(dict.fromkeys(found))


# --- how a name is used: what a text has that looks like one --------------------------------------------------------------

def words(text):
    return set(re.findall(r"(?<![\w.$])\w[\w-]*", text)) | set(re.findall(r"(?<![\w.$])\w+", text))


def called(text):
    return set(re.findall(r"(?<![\w.$])(\w+)\s*\(", text))


def points(text):
    """With what is before each dot: nd_syscall of nd_syscall.umask."""
    found = set(re.findall(r"(?<![\w.])[a-z_][\w.]*\w", text))
    return found | {".".join(name.split(".")[:n]) for name in found for n in range(1, name.count(".") + 1)}


def set_options(text):
    """Behind -x or in a pragma; a string of its own, as words of a command line are."""
    found = re.findall(r"(?:-\w*x\s*|^|pragma D option |,)(\w+)(?==|\s|,|$)", text, re.M)
    return set(found)


def limits_set(text):
    return set(re.findall(r"-D\s*(\w+)", text))


def given(text):
    """Of command lines: long options, letters alone or with others, and what has two characters."""
    found = re.findall(r"(?:^|\s)(--?[\w-]+)", text, re.M)
    return {f"-{letter}" for option in found if option[1] != "-" for letter in option[1:]} | set(found)


# Kind -> (names; what a text uses of them, None: any text that has it; language of the texts, None: all that comes out; what
# else is run)
KINDS = {
    "D subroutine": (lambda: [name for name in rows("d/subrs.def", "D_SUBR") if name[0] != "_"], called, "D"),
    "D action": (lambda: rows("d/actions.def", "D_ACTION"), called, "D"),
    "D variable": (lambda: rows("d/globals.def", "D_GLOBAL"), words, "D"),
    "D aggregation": (lambda: rows("d/aggfuncs.def", r"\w+"), called, "D"),
    "D register": (lambda: re.findall(r'{ "(R_\w+)"', (TOP / "src/arch/x86_64/operand.c").read_text()), words, "D"),
    "D probe": (lambda: [name for provider in ("dtrace", "proc", "sched") for name in
                         told(r"(\S+)$", "dtrace", "-l", "-P", provider)[1:]], words, "D"),
    "D provider": (lambda: sorted(set(rows("probe/providers.def", "PROVIDER")) - {"pyfunc", "usdt"}), words, "D"),
    "marker": (lambda: rows("abi/marker.def", r"\w+"), words, "D"),
    "option of -x": (lambda: rows("session/options.def", "OPTION"), set_options, "D"),
    "option of dtrace": (lambda: options(("dtrace",)), given, "D"),
    "option of stap": (lambda: options(("stap",)), given, "SystemTap", options_run),
    "option of the ready-made commands": (lambda: options(("dtap", "record")), given, "D"),
    "ready-made command": (lambda: told(r"^  (\w+) +", "dtap", "--help"), words, "D"),
    "form of output": (lambda: list(dict.fromkeys(re.findall(r'"(\.\w+)"', (TOP / "src/cmd/ready/formats.def").read_text()))),
                       None, "D"),
    "SystemTap function": (lambda: [name for name in rows("stp/functions.def", "STP_FUNC") if name[0] != "_"], called, "SystemTap"),
    "tapset function": (tapset_functions, called, "SystemTap"),
    "tapset alias": (tapset_aliases, points, "SystemTap", aliases_run),
    "SystemTap print operator": (lambda: rows("stp/prints.def", "STP_PRINT_OP"), words, "SystemTap"),
    "SystemTap limit": (limits, limits_set, "SystemTap"),
    "system call in D": (lambda: told(r"(\S+) entry$", "dtrace", "-l", "-n", "syscall:::entry"), words, "D",
                         lambda: calls_of_machine().made()),
    "IR operation": (lambda: re.findall(r'^IR_OP\(\w+,\s*"(\w+)"', (TOP / "src/ir/ops.def").read_text(), re.M), words, "IR"),
    "IR function": (lambda: re.findall(r'^IR_FN\(\w+,\s*"(\w+)"', (TOP / "src/ir/funcs.def").read_text(), re.M), words, "IR"),
    "fault": (lambda: texts("out/error.c", r'\[ABI_FAULT_\w+\] = "(.*?)"') + texts("stp/faults.def", r'STP_FAULT\(\w+,\s*"(.*?)"'),
              None, None),
    "drop": (lambda: texts("out/error.c", r'"DTRACEDROP_\w+", "(.*?)"') + [text for text in texts("out/error.c", r'DTRACEDROP.*?, "( .*?)" }')],
             None, None),
    "environment variable": (environment, words, "D"),
}


def exempt():
    """Kind -> name -> reason."""
    found = {}
    for row in (HERE / "named.exempt").read_text().splitlines():
        if row and not row.startswith("#"):
            kind, name, reason = (part.strip() for part in row.split("|"))
            found.setdefault(kind, {})[name] = reason
    return found


@functools.lru_cache(maxsize=None)
def used(form, language):
    return form(text_of(language))


def missing(kind):
    """(names that no test runs and that are not exempt, exempt ones that are run or are no names)."""
    names, form, language, *more = KINDS[kind]
    run = used(form, language) if form else text_of(language) if language else outputs()
    run_too = more[0]() if more else ()
    listed = list(dict.fromkeys(names()))
    lost = [name for name in listed if name not in run and name not in run_too]
    known = exempt().get(kind, {})
    return [name for name in lost if name not in known], [name for name in known if name not in lost], len(listed)


def main():
    lost = 0
    for kind in sys.argv[1:] or KINDS:
        names, needless, count = missing(kind)
        lost += len(names) + len(needless)
        print(f"{kind}: {len(names)} of {count}: {' '.join(names)}" + (f"; needlessly exempt: {' '.join(needless)}" if needless else ""))
    return bool(lost)


if __name__ == "__main__":
    sys.exit(main())
