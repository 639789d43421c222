#!/usr/bin/python3
"""Sizes swept: scripts with N of something, and what they must print.

    DTAP_BUILD=build tests/generate/sizes.py [--name NAME] [--size N] [-v]

A row of D or STAP is a function that makes the script with N of something, and its output.  The verdict on each size: that
output; or exit status 1 and a message that has a position in the script (FILE:LINE:COLUMN) or names the option that
raises the limit; in reasonable time.  Never a crash, another output, or an end that does not come.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import harness  # noqa: E402

FEW, ALL = (2, 300), (1, 2, 3, 10, 31, 32, 33, 64, 65, 100, 128, 255, 256, 257, 700, 1000, 1024, 2000, 4096, 5000, 10000,
                            20000)
LIMIT_S = 60
# Where, or by which option.  "x.d", line 1: that is how D's messages have it.
NAMED = re.compile(r"line \d+|:\d+:\d+|-x \w+|-D ?\w+|of at most \d+|MAX[A-Z]+")


def begin(body, before="int x;", end=" exit(0);"):
    return f"{before}\nBEGIN\n{{\n{body}\n{end}\n}}\n"


def each(n, text, glue="\n"):
    return glue.join(text.replace("#", str(k)) for k in range(n))


D = {
    "statements": lambda n: (begin(each(n, "x = #;") + 'printf("%d", x);'), f"{n - 1}"),
    "sums": lambda n: (begin("x = 0;" + each(n, "x += #;") + 'printf("%d", x);'), f"{n * (n - 1) // 2}"),
    "actions": lambda n: (begin(each(n, 'printf("# ");')), " ".join(map(str, range(n)))),
    "terms": lambda n: (begin("y = 1; x = " + each(n, "y", "+") + '; printf("%d", x);'), f"{n}"),
    "terms from the right": lambda n: (begin("y = 1; x = " + each(n, "(y + ", "") + "0" + ")" * n + '; printf("%d", x);'), f"{n}"),
    "parentheses": lambda n: (begin("x = " + "(" * n + "7" + ")" * n + '; printf("%d", x);'), "7"),
    "minuses": lambda n: (begin("y = 7; x = " + "- " * n + 'y; printf("%d", x);'), f"{-7 if n % 2 else 7}"),
    "conditionals": lambda n: (begin(f"y = {n - 1}; x = " + each(n, "y == # ? # : ", "") + '-1; printf("%d", x);'), f"{n - 1}"),
    "ifs": lambda n: (begin("x = 0;" + each(n, "if (x == #) { x++; }") + 'printf("%d", x);'), f"{n}"),
    "nested ifs": lambda n: (begin("x = 0;" + each(n, "if (x == #) { x++;") + "}" * n + 'printf("%d", x);'), f"{n}"),
    "else ifs": lambda n: (begin(f"y = {n - 1};" + each(n, "if (y == #) { x = #; } else ", "") + '{ x = -1; } printf("%d", x);'),
                           f"{n - 1}"),
    "clauses": lambda n: ("int x; " + each(n, "BEGIN { x += #; }") + 'BEGIN { printf("%d", x); exit(0); }', f"{n * (n - 1) // 2}"),
    "clauses with predicates": lambda n: ("int x; " + each(n, "BEGIN /x == #/ { x++; }") + 'BEGIN { printf("%d", x); exit(0); }', f"{n}"),
    "ticks": lambda n: ("int x; " + each(n, "tick-#s", ",\n").replace("tick-0s", "tick-7000s") + " { x++; }" +
                        'BEGIN { printf("%d", x); exit(0); }', "0"),
    "globals": lambda n: (begin(each(n, "g# = #;") + f'printf("%d %d", g0, g{n - 1});'), f"0 {n - 1}"),
    "thread-local variables": lambda n: (begin(each(n, "self->g# = #;") + f'printf("%d %d", self->g0, self->g{n - 1});'),
                                         f"0 {n - 1}"),
    "clause-local variables": lambda n: (begin(each(n, "this->g# = #;") + f'printf("%d %d", this->g0, this->g{n - 1});'),
                                         f"0 {n - 1}"),
    "string variables": lambda n: (begin(each(n, 'g# = "s#";') + f'printf("%s %s", g0, g{n - 1});'), f"s0 s{n - 1}"),
    "arrays": lambda n: (begin(each(n, "g#[1] = #;") + f'printf("%d %d", g0[1], g{n - 1}[1]);'), f"0 {n - 1}"),
    "elements": lambda n: (begin(each(n, "a[#] = #;") + f'printf("%d %d", a[0], a[{n - 1}]);'), f"0 {n - 1}"),
    "keys of an element": lambda n: (begin("a[" + each(n, "#", ",") + "] = 5; x = a[" + each(n, "#", ",") + ']; printf("%d", x);'), "5"),
    "aggregations": lambda n: (begin(each(n, "@g# = sum(#);") + f'printa("%@d ", @g0); printa("%@d", @g{n - 1}); clear(@g0);' +
                                     each(n, "trunc(@g#);")), f"0 {n - 1}"),
    "rows of an aggregation": lambda n: (begin(each(n, "@[#] = sum(1);")) + 'END { printa("%@d", @); }', "1" * n),
    "keys of an aggregation": lambda n: (begin("@[" + each(n, "#", ",") + "] = sum(5);") + 'END { printa("%@d", @); }', "5"),
    "lquantize steps": lambda n: (begin(f"@ = lquantize({n - 1}, 0, {n}, 1);") + 'END { printf("x"); trunc(@); }', "x"),
    # Strings end where strsize does, in both languages.
    "characters of a string": lambda n: (begin(f'printf("%d", strlen("{"x" * n}"));'), f"{min(n, 255)}"),
    "characters printed": lambda n: (begin(f's = "{"x" * n}"; printf("%s", s);'), "x" * min(n, 255)),
    "characters of a format": lambda n: (begin(f'printf("{"x" * n}");'), "x" * n),
    "conversions": lambda n: (begin('printf("' + "%d " * n + '", ' + each(n, "#", ", ") + ");"), " ".join(map(str, range(n)))),
    "width": lambda n: (begin(f'printf("%{n}d|", 7);'), "7".rjust(n) + "|"),
    "joined strings": lambda n: (begin('s = ""; ' + each(n, 's = strjoin(s, "x");') + ' printf("%d", strlen(s));'), f"{min(n, 255)}"),
    "calls in calls": lambda n: (begin("s = " + "strjoin(" * n + '""' + ', "x")' * n + '; printf("%d", strlen(s));'), f"{min(n, 255)}"),
    "letters of a name": lambda n: (begin(f'v{"x" * n} = 5; printf("%d", v{"x" * n});'), "5"),
    "letters of a comment": lambda n: (begin(f'/* {"x" * n} */ printf("5");'), "5"),
    "lines": lambda n: (begin("\n" * n + 'printf("5");'), "5"),
    "constants": lambda n: (each(n, "inline int c# = #;") + begin(f'printf("%d", c{n - 1});'), f"{n - 1}"),
    "constants of constants": lambda n: ("inline int c0 = 1;\n" + "\n".join(f"inline int c{k + 1} = c{k} + 1;" for k in range(n)) +
                                         begin(f'printf("%d", c{n});'), f"{n + 1}"),
    "enumerators": lambda n: ("enum e { " + each(n, "e#", ",") + " };" + begin(f'printf("%d", e{n - 1});'), f"{n - 1}"),
    "members": lambda n: ("struct s { " + each(n, "int m#;") + " };" + begin(f'printf("%d", offsetof(struct s, m{n - 1}));'),
                          f"{4 * (n - 1)}"),
    "structures": lambda n: (each(n, "struct s# { int m; };") + begin(f'printf("%d", sizeof(struct s{n - 1}));'), "4"),
    "types of types": lambda n: ("typedef int t0;\n" + "\n".join(f"typedef t{k} t{k + 1};" for k in range(n)) +
                                 begin(f'printf("%d", sizeof(t{n}));'), "4"),
    "stars": lambda n: (begin(f'printf("%d", sizeof(int {"*" * n}));'), "8"),
    "speculations": lambda n: (begin(each(n, "s# = speculation();") + 'printf("x");'), "x"),
}

PROBE = "probe begin\n{\n%s\nexit()\n}\n"

STAP = {
    "statements": lambda n: ("global x " + PROBE % (each(n, "x = #") + '\nprintf("%d", x)'), f"{n - 1}"),
    "prints": lambda n: (PROBE % each(n, 'printf("# ")'), " ".join(map(str, range(n)))),
    "terms": lambda n: ("global y = 1 " + PROBE % ("x = " + each(n, "y", "+") + '\nprintf("%d", x)'), f"{n}"),
    "parentheses": lambda n: (PROBE % ("x = " + "(" * n + "7" + ")" * n + '\nprintf("%d", x)'), "7"),
    "nested ifs": lambda n: ("global x " + PROBE % (each(n, "if (x == #) { x++") + "}" * n + '\nprintf("%d", x)'), f"{n}"),
    "nested blocks": lambda n: (PROBE % ("{" * n + 'printf("x")' + "}" * n), "x"),
    "else ifs": lambda n: ("global x " + PROBE % (f"y = {n - 1}\n" + each(n, "if (y == #) x = #\nelse ", "") + 'x = -1\nprintf("%d", x)'),
                           f"{n - 1}"),
    "probes": lambda n: ("global x\n" + each(n, "probe begin(-1) { x += # }") + PROBE % 'printf("%d", x)', f"{n * (n - 1) // 2}"),
    "probe points": lambda n: ("global x\nprobe " + each(n, "begin(-1)", ",\n") + " { x++ }\n" + PROBE % 'printf("%d", x)', f"{n}"),
    "timers": lambda n: ("global x\nprobe " + each(n, "timer.s(9#)", ",\n") + " { x++ }\n" + PROBE % 'printf("%d", x)', "0"),
    "globals": lambda n: (each(n, "global g#") + "\n" + PROBE % (each(n, "g# = #") + f'\nprintf("%d %d", g0, ' + each(n, "g#", "+") + ")"),
                          f"0 {n * (n - 1) // 2}"),
    "locals": lambda n: (PROBE % (each(n, "g# = #") + f'\nprintf("%d %d", g0, g{n - 1})'), f"0 {n - 1}"),
    "strings": lambda n: (PROBE % (each(n, 'g# = "s#"') + f'\nprintf("%s %s", g0, g{n - 1})'), f"s0 s{n - 1}"),
    "functions": lambda n: (each(n, "function f#(a) { return a + # }") + "\nglobal x\n" + PROBE % (each(n, "x = f#(x)") + '\nprintf("%d", x)'),
                            f"{n * (n - 1) // 2}"),
    "functions of functions": lambda n: ("function f0(a) { return a }\n" + "\n".join(
        f"function f{k + 1}(a) {{ return f{k}(a) + 1 }}" for k in range(n)) + "\n" + PROBE % f'printf("%d", f{n}(0))', f"{n}"),
    "parameters": lambda n: ("function f(" + each(n, "a#", ",") + ") { return a0 + a%d }\n" % (n - 1) + PROBE % (
        'printf("%d", f(' + each(n, "#", ",") + "))"), f"{n - 1}"),
    "elements": lambda n: ("global a " + PROBE % (each(n, "a[#] = #") + f'\nprintf("%d %d", a[0], a[{n - 1}])'), f"0 {n - 1}"),
    "elements by a loop": lambda n: ("global a " + PROBE % (
        f'for (i = 0; i < {n}; i++) a[i] = i\nx = 0 foreach (k in a) x += a[k]\nprintf("%d", x)'), f"{n * (n - 1) // 2}"),
    "keys": lambda n: ("global a " + PROBE % ("a[" + each(n, "#", ",") + '] = 5\nprintf("%d", a[' + each(n, "#", ",") + "])"), "5"),
    "turns": lambda n: (PROBE % f'x = 0 for (i = 0; i < {n}; i++) x += i\nprintf("%d", x)', f"{n * (n - 1) // 2}"),
    "recursion": lambda n: ("function f(a) { return a ? 1 + f(a - 1) : 0 }\n" + PROBE % f'printf("%d", f({n}))', f"{n}"),
    "characters": lambda n: (PROBE % f'printf("%d", strlen("{"x" * n}"))', f"{min(n, 511)}"),
    "characters printed": lambda n: ("global s " + PROBE % f's = "{"x" * n}"\nprintf("%s", s)', "x" * min(n, 511)),
    "characters of a format": lambda n: (PROBE % f'printf("{"x" * n}")', "x" * n),
    "joined strings": lambda n: ('global s ' + PROBE % (each(n, 's = s . "x"') + '\nprintf("%d", strlen(s))'), f"{min(n, 511)}"),
    "statistics": lambda n: ("global s " + PROBE % (each(n, "s <<< #") + '\nprintf("%d", @sum(s))'), f"{n * (n - 1) // 2}"),
    "macros": lambda n: (each(n, "@define m# %( # %)") + "\nglobal x " + PROBE % (each(n, "x += @m#") + '\nprintf("%d", x)'),
                         f"{n * (n - 1) // 2}"),
    "conditions of the preprocessor": lambda n: ("%( 1 == 1 %? " * n + PROBE % 'printf("5")' + " %)" * n, "5"),
    "letters of a name": lambda n: (PROBE % f'v{"x" * n} = 5\nprintf("%d", v{"x" * n})', "5"),
    "aliases": lambda n: ("probe a0 = begin { }\n" + "\n".join(f"probe a{k + 1} = a{k} {{ }}" for k in range(n)) + f"\nprobe a{n} {{ "
                          'printf("5") exit() }', "5"),
    "tries": lambda n: ("global x " + PROBE % ("try {" * n + 'x = 1 / x' + "} catch { x++ }" * n + '\nprintf("%d", x)'), "1"),
}


def run(language, name, n, options=()):
    """None, or what is wrong."""
    script, want = (D if language == "d" else STAP)[name](n)
    with tempfile.NamedTemporaryFile("w", suffix=f".{language}") as file:
        file.write(script)
        file.flush()
        argv = [harness.DTRACE, "-q", *options, "-s", file.name] if language == "d" else [harness.STAP, *options, file.name]
        try:
            result = harness.run(argv, timeout=LIMIT_S)
        except AssertionError as error:
            return f"{language}: {name}, {n}: {str(error)[:600]}"
    if result.code == 0 and result.out.strip("\n ") == want.strip():
        return None
    if n > 2 and result.code == 1 and NAMED.search(result.err):
        return None
    return f"{language}: {name}, {n} {options}: status {result.code}, {result.out[:200]!r}, not {want[:200]!r}; {result.err[:500]}"


def ways(language):
    return ((), ("-x", "place=target")) if language == "d" else ((), ("--place=target",))


def main():
    parser = argparse.ArgumentParser(description="Sizes swept; see the comment of this file.")
    parser.add_argument("--name")
    parser.add_argument("--language", choices=["d", "stp"])
    parser.add_argument("--size", type=int)
    parser.add_argument("-v", "--verbose", action="store_true")
    options, wrong = parser.parse_args(), 0
    for language, table in (("d", D), ("stp", STAP)):
        for name in table:
            if (options.name and name != options.name) or (options.language and options.language != language):
                continue
            for how in ways(language):
                for n in [options.size] if options.size else ALL:
                    begin_s = time.monotonic()
                    bad = run(language, name, n, how)
                    took = time.monotonic() - begin_s
                    wrong += bool(bad)
                    if bad:
                        print("WRONG", bad, flush=True)
                    if options.verbose and took > 2:
                        print(f"{language}: {name}, {n} {how}: {took:.1f} s", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
