"""
A script reads and writes at any address: what it gets is what is there, or a fault with the address, and the traced
program never notices.

The cases are made from the tables of the functions themselves, so a new row is tried like the others: each function x
each of its arguments that can be an address x each place of places.py, in both languages, in each place that runs
scripts.  Many cases go into one run; each prints its number, or an error that says its number.
"""
import platform
import re
import subprocess

import pytest

import harness
import places
from places import PLACES, PROGRAM
from ways import WAYS

# --- D: the cases ----------------------------------------------------------------------------------

SRC = harness.TOP / "src"
SIZE = 4                                # of what is read and written where a size is to be said

# Those that follow a pointer of the kernel: refused in the traced process.
KERNELS = re.compile(r"_task_|d_path")
# What a plain "const char *" or a pointer is followed by: DTrace's own, where that is the kernel's memory.
BY_USER = ("copyin", "copyinstr", "copyinto", "copyout", "copyoutstr")


class Case:
    """@code and what it needs at @place: so many bytes, "string", "write", or None: nothing is followed."""

    def __init__(self, code, name, need, predicate=""):
        self.code, self.name, self.need, self.predicate = code, name, need, predicate
        self.address, self.bytes, self.string = PLACES[name]

    def expects(self):
        """What is printed, "..." for anything; None: the fault."""
        if self.need is None:
            return "..."
        if self.need == "string":
            return self.string
        if self.need == "write":
            return "..." if self.bytes >= SIZE or self.name == "write only" else None
        return "..." if self.bytes >= self.need else None

    def __repr__(self):
        return f"{self.predicate} {{ {self.code} }}"


def rows(path, macro):
    """(name, result, [types of the arguments]) of a table."""
    text = (SRC / path).read_text()
    for name, result, args in re.findall(rf'^{macro}\((\w+),\s*"([\w *]+?)\((.*?)\)"', text, flags=re.M):
        yield name, result.strip(), [a.split("|")[0].strip() for a in args.split(",")] if args else []


HARMLESS = {"char": "'c'", "size_t": str(SIZE), "int": "2", "int64_t": "2", "uint64_t": "2", "void *": f"alloca({SIZE})",
            "const char *": '"end"', "uintptr_t": f"{places.SPARE:#x}", "@": "1", "pyobj": "0"}


def d_calls(path, macro):
    """(name, result, call with %s for the address, that argument's type) for each argument that can be one."""
    for name, result, args in rows(path, macro):
        args = [a for a in args if not a.startswith("[") and a != "..."]
        for k, kind in enumerate(args):
            if kind not in ("void *", "const char *", "uintptr_t", "@", "pyobj"):
                continue
            words = [HARMLESS[a] for a in args]
            if name == "link_ntop":
                words[0] = "1"          # Ethernet
            cast = {"uintptr_t": "%s", "pyobj": "%s", "void *": "(void *)%s"}.get(kind, "stringof((char *)%s)")
            words[k] = cast
            yield name, result, f"{name}({', '.join(words)})", kind


def d_need(name, kind):
    """What subroutine @name does with an address."""
    if kind == "pyobj":
        return 16                       # no place has an object
    if name.startswith("py"):
        return "no such name"
    if name == "copyinstr" or kind == "const char *" or kind == "@":
        return "string"
    if name in ("copyout", "copyoutstr") and kind == "uintptr_t":
        return "write"
    return {"inet_ntoa": 4, "inet_ntoa6": 16, "inet_ntop": 4, "link_ntop": 6}.get(name, SIZE)


def d_cases():
    for name in PLACES:
        address = f"{PLACES[name][0]:#x}"
        for function, result, call, kind in d_calls("d/subrs.def", "D_SUBR"):
            if KERNELS.search(function):
                continue
            call %= address
            need = d_need(function, kind)
            if function == "bcopy" and call.index(address) > call.index(","):
                need = "scratch"        # where it may write is memory of the clause
            if function == "copyinto" and call.index(address) > call.index(","):
                need = "scratch"
            if result == "void":
                yield Case(f'{call}; printf("@N\\n");', name, need)
            elif result == "double":
                yield Case(f'printf("@N %f\\n", {call});', name, need)
            elif function in D_FINDS:           # what it does not find is NULL, which could not be printed
                yield Case(f'printf("@N %d\\n", {call} == NULL);', name, need)
            elif result == "string":
                yield Case(f'printf("@N %s\\n", {call});', name, need)
            elif result == "void *":
                yield Case(f'printf("@N %x\\n", *(uint8_t *){call});', name, need)
            else:
                yield Case(f'printf("@N %x\\n", {call});', name, need)
        for function, result, call, kind in d_calls("d/actions.def", "D_ACTION"):
            if function in D_FORMATS:
                continue
            if kind == "@":
                yield Case(f'{call % address}; printf("@N\\n");', name, "string")
            elif kind == "uintptr_t":
                yield Case(f'{call % address}; printf("@N\\n");', name, None)
        for text, need in D_MORE:
            yield Case(text.replace("ADDR", address), name, need)
        for text, need in D_PREDICATES:
            yield Case('printf("@N\\n");', name, need, text.replace("ADDR", address))


D_FINDS = ("strchr", "strrchr", "strstr", "strtok")

# Their first argument is a constant or an object, and D_MORE has them, or an aggregation.
D_FORMATS = ("print", "printa", "printf", "tracemem", "setopt", "system", "freopen", "clear", "denormalize", "normalize", "trunc")

# Ways to an address that no table has; strange sizes.
D_MORE = [
    ('printf("@N %s\\n", copyinstr(ADDR, 300));', "string"),
    ('copyinstr(ADDR, 0); printf("@N\\n");', 1),
    ('copyin(ADDR, 0); printf("@N\\n");', 0),
    ('printf("@N %x\\n", *(uint8_t *)ADDR);', 1),
    ('printf("@N %x\\n", *(uint16_t *)ADDR);', 2),
    ('printf("@N %x\\n", *(uint32_t *)ADDR);', 4),
    ('printf("@N %x\\n", *(uint64_t *)ADDR);', 8),
    ('printf("@N %x\\n", ((struct hostile *)ADDR)->third);', 4),
    ('printf("@N %x\\n", ((struct hostile *)ADDR)->bits);', 8),
    ('printf("@N %x\\n", ((uint8_t *)ADDR)[0]);', 1),
    ('printf("@N %s\\n", (string)((char *)ADDR));', "string"),
    ('tracemem((void *)ADDR, 4); printf("@N\\n");', 4),
    ('printf("@N %s\\n", stringof((char *)ADDR));', "string"),
    ('system("true %s", stringof((char *)ADDR)); printf("@N\\n");', "string"),
    ('print(*(int *)ADDR); printf("@N\\n");', 4),
    ('@s[copyinstr(ADDR)] = count(); printf("@N\\n");', "string"),
    ('@t[copyinstr(ADDR), 1] = count(); printf("@N\\n");', "string"),
    ('@u[stringof((char *)ADDR)] = quantize(1); printf("@N\\n");', "string"),
    ('keyed[copyinstr(ADDR)] = 1; printf("@N\\n");', "string"),
    ('self->text = copyinstr(ADDR); printf("@N\\n");', "string"),
    ('this->text = copyinstr(ADDR); printf("@N %s\\n", this->text);', "string"),
    ('*(int *)ADDR = 3; printf("@N\\n");', "scratch"),
    ('this->n = -1; copyin(ADDR, this->n); printf("@N\\n");', "scratch"),
    ('this->n = 1 << 31; copyin(ADDR, this->n); printf("@N\\n");', "scratch"),
    ('this->n = -1; copyinto(ADDR, this->n, alloca(8)); printf("@N\\n");', "scratch"),
    ('this->n = -1; bcopy((void *)ADDR, alloca(8), this->n); printf("@N\\n");', "scratch"),
    ('this->n = -1; copyout(alloca(8), ADDR, this->n); printf("@N\\n");', "scratch"),
    ('this->n = -1; bcopy((void *)ADDR, alloca(this->n), 8); printf("@N\\n");', "scratch"),
    ('this->n = -1; printf("@N %s\\n", copyinstr(ADDR, this->n));', "string"),
]
D_PREDICATES = [
    ('(copyinstr(ADDR) != "" || 1)', "string"),
    ('*(uint8_t *)ADDR != 255', 1),
]


def d_script(cases):
    clause = 'python$target:::function-entry /copyinstr(arg1) == "probe"%s/\n{ %s }\n'
    text = "#pragma D option destructive\n"
    text += "struct hostile { int third; int bits : 3; };\n"
    for n, case in enumerate(cases):
        code = case.code.replace("@N", f"@{n}")
        text += clause % (f" && {case.predicate}" if case.predicate else "", code)
    return text


FAULT = re.compile(r"error in dt_clause_(\d+) for probe ID \d+ \(.*\): "
                   r"(?:invalid address(?: \((0x[0-9a-f]+)\))?|out of scratch space|no such argument|an object of another kind)")


def d_judge(case, n, out, faults, by_kernel):
    """What is wrong with case @n, or None."""
    printed = re.search(rf"^(.*)@{n}\b ?(.*)$", out, flags=re.M)
    fault = faults.get(n) or (hex(case.address) if n in faults and case.name == "the last byte of all" else None)
    if case.need in ("scratch", "no such name"):
        return None if n in faults and not printed else "outside of the clause's memory"
    if printed and fault:
        return "printed and failed"
    if not printed and not fault:
        return "neither printed nor failed"
    want = case.expects()
    if fault and want is None:
        return None if (int(fault, 16) - case.address) % (1 << 64) < 8 else f"the fault says {fault}"
    if by_kernel and (case.name == "write only" or not any(word in case.code + case.predicate for word in BY_USER)):
        return None                     # its own memory, and pages that the processor can read all the same
    if fault:
        return f"fault {fault}, and {want!r} is there"
    if want is None:
        return f"printed {printed.group(2)!r}, and nothing is there"
    return None


# --- running ---------------------------------------------------------------------------------------

BATCH = 80                              # clauses of one probe make one program, which has its limit


def can(way):
    if way == "kernel" and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())
    if way == "interpreted" and platform.machine() != "x86_64":
        pytest.skip("everything is interpreted here")


def try_d(dtrace, interp, way):
    can(way)
    every = sorted(d_cases(), key=lambda case: case.need == "write")    # the others find what was there
    if way == "kernel":
        every = [case for case in every if not re.search(r"copyout|\bpy\w+\(", case.code)]     # refused by name
    bad = []
    for first in range(0, len(every), BATCH):
        cases = every[first:first + BATCH]
        script = interp.dir / "cases.d"
        script.write_text(d_script(cases))
        result = dtrace("-s", script, "-x", f"place={'kernel' if way == 'kernel' else 'target'}", "-x", "agent=always",
                        "-c", interp.command(PROGRAM, "1"), timeout=240, **WAYS[way])
        assert re.search(r"^result 7 good string$", result.out, flags=re.M), result
        assert result.code == 0, result
        assert (way == "interpreted") == ("the programs are interpreted there" in result.err) or way == "kernel", result
        faults = {int(clause): address for clause, address in FAULT.findall(result.err)}
        for n, case in enumerate(cases):
            wrong = d_judge(case, n, result.out, faults, way == "kernel")
            if wrong:
                bad.append(f"{case.name}: {case!r}: {wrong}")
    print(f"{len(every)} cases")
    assert not bad, f"{len(bad)} of {len(every)}:\n" + "\n".join(bad[:40])


@pytest.mark.slow
@pytest.mark.needs_root
@pytest.mark.interps("3.9")
@pytest.mark.parametrize("way", WAYS)
def test_d(dtrace, interp, way):
    try_d(dtrace, interp, way)


# Another hook of another interpreter; what the kernel and the interpreter of programs do is not about Python.
@pytest.mark.slow
@pytest.mark.needs_root
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("way", WAYS if harness.NIGHTLY else ["compiled"])
def test_d_elsewhere(dtrace, interp, way):
    try_d(dtrace, interp, way)


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("place", ["target", "kernel"])
def test_d_of_the_tracer(dtrace, interp, place):
    """BEGIN and its like run in the tracer, whose memory is nobody's business."""
    if place == "kernel":
        can(place)
    cases = [(name, call) for name in PLACES for call in (f"copyinstr({PLACES[name][0]:#x})", f"copyin({PLACES[name][0]:#x}, 4)")]
    script = "".join(f"BEGIN {{ trace({call}); }}\n" for _, call in cases) + "python$target:::gc-start { n++; }"
    result = dtrace("-x", f"place={place}", "-x", "agent=always", "-n", script, "-c", interp.command(PROGRAM, "1"))
    assert result.code == 0 and "\nresult 7 good string\n" in result.out, result
    assert {int(clause) for clause, _ in FAULT.findall(result.err)} == set(range(len(cases))), result


# --- SystemTap -------------------------------------------------------------------------------------

# Each function that takes a number is given addresses for it; these do nothing but end the session or the machine's peace.
NOT_CALLED = re.compile(r"^(exit|abort|error|assert|system|panic|ftrace|delete_stopwatch|.*speculat.*|_stp_.*|mdelay|udelay|"
                        r"prometheus.*|offcputime_.*|.*stopwatch.*|print_u?stack|print_u?syms)$")
# Those that say by their names what they do; an @cast and what is behind it is like user_int().
READS = re.compile(r"^(user|kernel)_(string|char|short|u?int|u?long|pointer|buffer)")
FEW = ("null", "PROT_NONE", "the last byte of all")

CAST = """
struct deep { int bits : 3; long last; };
struct hostile { int third; char text[8]; struct deep *next; struct deep in; } hostile_instance;
"""


class Call:
    """A call of a SystemTap function: @gives "string", "long" or "nothing"; @reads: it is its trade."""

    def __init__(self, code, name, gives, reads=False):
        self.code, self.name, self.gives, self.reads = code, name, gives, reads
        self.address, self.bytes, self.string = PLACES[name]
        self.shape = code.replace(f"{self.address:#x}", "ADDR")

    def text(self, n):
        shown = {"string": f'printf("@{n} %s\\n", {self.code})', "long": f'printf("@{n} %d\\n", {self.code})'}
        done = shown.get(self.gives, f'{self.code}; printf("@{n}\\n")')
        return f'\ttry {{ {done} }} catch (why) {{ printf("!{n} %s\\n", why) }}\n'

    def __repr__(self):
        return f"{self.name}: {self.code}"


def stap_functions():
    """(name, what it gives, types of its arguments), all of them."""
    listed = harness.stap("--dump-functions").out
    for name, gives, args in re.findall(r"^(\w+):(\w+) \(([^)]*)\)", listed, flags=re.M):
        yield name, gives, [a.split(":")[1] for a in args.split(", ")] if args else []


def stap_calls(library):
    for function, gives, args in stap_functions():
        if NOT_CALLED.match(function):
            continue
        for k, kind in enumerate(args):
            if kind != "long":
                continue
            words = ['"end"' if a == "string" else str(SIZE) for a in args]
            for name in PLACES if READS.match(function) and k == 0 else FEW:
                words[k] = f"{PLACES[name][0]:#x}"
                yield Call(f"{function}({', '.join(words)})", name, gives, bool(READS.match(function)) and k == 0)
    for name, (address, _, _) in PLACES.items():
        for member, gives in (("third", "long"), ("text", "string"), ("text[7]", "long"), ("next->last", "long"),
                              ("in->bits", "long")):
            shown = f'@cast({address:#x}, "struct hostile", "{library}")->{member}'
            yield Call(shown if gives == "long" else f"user_string_n(&{shown}, 4)", name, gives, member in ("third", "text[7]"))


STAP_ERROR = re.compile(r"\bat (0x[0-9a-f]+)")


def stap_judge(call, n, out):
    printed = re.search(rf"@{n}\b ?(.*)$", out, flags=re.M)
    failed = re.search(rf"!{n} (.*)$", out, flags=re.M)
    fault = failed and STAP_ERROR.search(failed.group(1))
    if bool(printed) == bool(failed):
        return "neither printed nor failed" if not printed else "printed and failed"
    if failed and call.reads and not (fault and (int(fault.group(1), 16) - call.address) % (1 << 64) < 64):
        return f"the error has no address, or another: {failed.group(1)}"
    if call.shape == "user_string(ADDR)" and call.name != "write only":
        if bool(printed) != (call.string is not None) or (printed and printed.group(1) != call.string):
            return f"printed {printed and printed.group(1)!r}, and there is {call.string!r}"
    return None


def stap_script(interp, calls):
    lines = "".join(call.text(n) for n, call in enumerate(calls))
    return (f'probe process("{interp.executable}").mark("function__entry")\n'
            f'{{ if (user_string($arg2) == "probe") {{\n{lines} }} }}\n')


def stap_run(interp, calls, way, command, *args):
    path = interp.dir / "cases.stp"
    path.write_text(stap_script(interp, calls))
    return harness.stap(*args, "--place=" + ("kernel" if way == "kernel" else "target"), path, "-c", command, timeout=240,
                        **WAYS[way])


REFUSED = {}                            # shapes of calls that a place does not have, found once


def stap_halves(interp, calls, way, command):
    """(calls, the run with them), in as many runs as it takes; None for a call that is refused alone."""
    result = stap_run(interp, calls, way, command)
    if result.code == 1 and "result" not in result.out and re.search(r"^Pass \d: \w+ failed", result.err, flags=re.M):
        if len(calls) == 1:
            yield calls, None
            return
        half = len(calls) // 2
        yield from stap_halves(interp, calls[:half], way, command)
        yield from stap_halves(interp, calls[half:], way, command)
    else:
        yield calls, result


def try_stap(interp, way, tmp_path):
    can(way)
    (tmp_path / "cast.c").write_text(CAST)
    library = tmp_path / "libcast.so"
    subprocess.run(["gcc", "-g", "-shared", "-fPIC", "-o", library, tmp_path / "cast.c"], check=True)
    command = interp.command(PROGRAM, "1")
    every = [call for call in stap_calls(library) if call.reads or interp.version == "3.9"]
    refused, bad, ran = REFUSED.setdefault(way == "kernel", set()), [], 0
    for of_all in (False, True):        # with one address each, to see which functions the place has
        here = [call for call in every if (call.name != "null") == of_all and call.shape not in refused]
        for first in range(0, len(here), 80):
            for calls, result in stap_halves(interp, here[first:first + 80], way, command):
                if not result:
                    refused.add(calls[0].shape)
                    continue
                ran += len(calls)
                assert result.code == 0 and "\nresult 7 good string\n" in result.out, result
                for n, call in enumerate(calls):
                    wrong = stap_judge(call, n, result.out)
                    if wrong:
                        bad.append(f"{call!r}: {wrong}")
    print(f"{ran} calls of {len(every)}, {len(refused)} of functions that the place refuses")
    assert not bad, f"{len(bad)} of {ran}:\n" + "\n".join(bad[:40])
    assert ran > 900


@pytest.mark.slow
@pytest.mark.needs_root
@pytest.mark.interps("3.9")
@pytest.mark.parametrize("way", [pytest.param(way, marks=pytest.mark.nightly if way == "kernel" else ()) for way in WAYS])
def test_stap(interp, way, tmp_path):
    try_stap(interp, way, tmp_path)


@pytest.mark.slow
@pytest.mark.needs_root
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("way", WAYS if harness.NIGHTLY else ["compiled"])
def test_stap_elsewhere(interp, way, tmp_path):
    try_stap(interp, way, tmp_path)
