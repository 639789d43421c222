"""Random D scripts, in pieces: each has clauses, and what must come out of them given the program's own counts.

A piece's rows begin with its label, so that pieces do not disturb each other.  Pieces without a check are there for what
they do to the session: faults, reports in the middle, full tables, speculations.
"""
import re

ENTRY, RETURN = "python$target:::function-entry", "python$target:::function-return"
OWN = 'substr(copyinstr(arg1), 0, 5) == "soak_"'


def rows(text, label):
    """The rows of an aggregation whose keys begin with @label: {the other keys: value}."""
    found = re.findall(rf"^ *{label} +(.*?) *(-?\d+)$", text, flags=re.M)
    return {" ".join(key.split()): int(value) for key, value in found}


def same(got, want):
    want = {key: value for key, value in want.items() if value}
    assert got == want, f"{got}, not {want}"


class Piece:
    def __init__(self, label, text, check=None, loses=None):
        self.label, self.text, self.check, self.loses = label, text, check, loses


def count(label, program, rnd):
    where = rnd.choice((ENTRY, RETURN))
    return Piece(label, f'{where} /{OWN}/ {{ @{label}["{label}", copyinstr(arg1)] = count(); }}',
                 lambda text: same(rows(text, label), program.counts))


def plain_count(label, program, rnd):
    """What the agent counts without running a program."""
    where = rnd.choice((ENTRY, RETURN))
    return Piece(label, f"{where} {{ @{label}[copyinstr(arg1)] = count(); }}",
                 lambda text: same({name: int(value) for name, value in
                                    re.findall(r"^  (soak_\w+) +(\d+)$", text, flags=re.M)}, program.counts))


def both(label, program, rnd):
    return Piece(label, f'{ENTRY}, {RETURN} /{OWN}/ {{ @{label}["{label}", probename, copyinstr(arg1)] = count(); }}',
                 lambda text: same(rows(text, label), {f"{probe} {name}": n for name, n in program.counts.items()
                                                       for probe in ("function-entry", "function-return")}))


def lines(label, program, rnd):
    """A plain function is entered at its first line."""
    names = {name for shape, name in program.names if shape in ("plain", "local", "deep", "raising", "key")}
    want = {name: program.lines[name] * program.counts[name] for name in names}
    return Piece(label, f'{ENTRY} /{OWN}/ {{ @{label}["{label}", copyinstr(arg1)] = sum(arg2); }}',
                 lambda text: same({name: n for name, n in rows(text, label).items() if name in names}, want))


def table(label, program, rnd):
    shown = "".join(f'printf("{label} {name} %d\\n", {label}["{name}"]); ' for _, name in program.names)
    return Piece(label, f"{ENTRY} /{OWN}/ {{ {label}[copyinstr(arg1)]++; }} END {{ {shown} }}",
                 lambda text: same({k: v for k, v in rows(text, label).items() if v}, program.counts))


def depth(label, program, rnd):
    """Entries and returns of a function nest."""
    return Piece(label, f'''{ENTRY} /{OWN}/ {{ self->{label}++; @{label}["{label}", "all"] = sum(1); }}
        {RETURN} /{OWN}/ {{ self->{label}--; @{label}["{label}", "all"] = sum(-1); }}
        {RETURN} /self->{label} < 0/ {{ @{label}["{label}", "below"] = sum(1); }}''',
                 lambda text: same(rows(text, label), {}) if rows(text, label) != {"all": 0} else None)


def printed(label, program, rnd):
    _, name = rnd.choice(program.names)

    def check(text, lost):
        got = len(re.findall(rf"^{label} {name} \d+$", text, flags=re.M))
        assert got <= program.counts[name] <= got + lost, f"{got} lines and {lost} lost, not {program.counts[name]}"

    return Piece(label, f'{ENTRY} /copyinstr(arg1) == "{name}"/ {{ printf("{label} %s %d\\n", copyinstr(arg1), arg2); }}',
                 loses=check)


def times(label, program, rnd):
    return Piece(label, f'''{ENTRY} /{OWN}/ {{ self->{label}d++; self->{label}[self->{label}d] = timestamp; }}
        {RETURN} /{OWN} && self->{label}[self->{label}d]/
        {{
            @{label}["{label}", copyinstr(arg1)] = quantize(timestamp - self->{label}[self->{label}d]);
            self->{label}[self->{label}d] = 0;
            self->{label}d--;
        }}''')


NOISE = {
    "fault": ENTRY + ' /copyinstr(arg1) == "soak_1"/ { trace(copyinstr(8)); }',
    "strings": ENTRY + ''' { this->s = strjoin(copyinstr(arg0), strjoin(":", copyinstr(arg1)));
        @LABEL[strlen(this->s), basename(copyinstr(arg0)), rindex(this->s, "k")] = max(strlen(this->s)); }''',
    "keys": ENTRY + " { LABEL[timestamp, tid] = arg2; LABEL[timestamp - 1000, tid] = 0; }",
    "clear": ENTRY + ' { @LABEL["LABEL", pid, tid] = count(); } tick-7ms { clear(@LABEL); } tick-11ms { trunc(@LABEL, 1); }',
    "report": ENTRY + ' { @LABEL[copyinstr(arg1)] = avg(arg2); } tick-13ms { printa("LABEL %s %@d\\n", @LABEL); }',
    "memory": ENTRY + " { @LABEL[*(int *)copyin(arg0, 4)] = lquantize(arg2, 0, 100, 10); }",
    "who": ENTRY + ' { @LABEL["LABEL", execname, uid, cpu, ppid] = stddev(vtimestamp); }',
    "speculation": ENTRY + ''' /copyinstr(arg1) == "soak_2"/ { self->LABEL = speculation(); speculate(self->LABEL);
        printf("LABEL %d\\n", arg2); } ''' + RETURN + " /self->LABEL/ { commit(self->LABEL); self->LABEL = 0; }",
    "lines": "python$target:::line { @LABEL[copyinstr(arg1), arg2] = count(); }",
    "rest": "python$target:::gc-start, python$target:::audit, python$target:::import-find-load-start "
            '{ @LABEL["LABEL", probename] = count(); }',
    "c": "python$target:::cfunction-entry { @LABEL[copyinstr(arg3)] = count(); }",
    "exceptions": 'python$target:::exception-raise { @LABEL["LABEL", copyinstr(arg0)] = count(); }',
    "threads": 'python$target:::thread-start { @LABEL["LABEL", copyinstr(arg1)] = count(); }',
    "blocks": """python$target:::memory-alloc { LABEL[pid, arg2] = arg1; @LABEL["LABEL", pystack(3)] = sum(arg1); }
        python$target:::memory-free { LABEL[pid, arg1] = 0; }""",
    "walltime": ENTRY + ' { printf("LABEL %Y %d\\n", walltimestamp, tid); }',
    "errors": 'ERROR { @LABEL["LABEL", arg4] = count(); }',
}

CHECKED = (count, count, both, lines, table, depth, printed, times)


class Script:
    """Pieces for a program, and options."""

    def __init__(self, rnd, program, place):
        self.pieces = [rnd.choice(CHECKED)(f"c{k}", program, rnd) for k in range(rnd.randint(1, 4))]
        if rnd.random() < 0.3:
            self.pieces = [plain_count("c9", program, rnd)]
        for k in range(rnd.choice((0, 0, 1, 1, 2, 3))):
            self.pieces.append(Piece(f"n{k}", NOISE[rnd.choice(list(NOISE))].replace("LABEL", f"n{k}")))
        self.options = []
        if rnd.random() < 0.2:
            self.options += ["-x", f"bufsize={rnd.choice(('4k', '16k', '1m'))}"]
        if rnd.random() < 0.1 and place != "kernel":
            self.options += ["-x", "bufpolicy=wait"]
        if rnd.random() < 0.1:
            self.options += ["-x", f"strsize={rnd.choice((16, 64, 1024))}"]
        self.text = "\n".join(piece.text for piece in self.pieces)

    def check(self, text, err):
        """What came out, of a session that saw the whole program.  With losses only what allows for them."""
        lost = {what: sum(int(n) for n in re.findall(rf"(\d+) {words}", err)) for what, words in (
            ("records", r"drops?\b"), ("aggregations", r"aggregation drop"), ("variables", r"dynamic variable drop"))}
        for piece in self.pieces:
            try:
                if piece.loses:
                    piece.loses(text, lost["records"])
                elif piece.check and not any(lost.values()):
                    piece.check(text)
            except AssertionError as error:
                raise AssertionError(f"{piece.label}: {error}") from None
