#!/usr/bin/python3
"""
Random programs: what they print in each place must be what Python makes of them.

    generate.py [--seed S] [--first N] [--scripts N | --seconds S] [--cases N] [--language d|stp] [--way WAY] [--keep FOLDER]

A script is made from the seed and its number: --seed S --first N --scripts 1 does it again.  One that prints something else
is made smaller, case by case and statement by statement, and shown.
"""
import argparse
import pathlib
import random
import re
import sys
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parent.parent)]

import harness  # noqa: E402
import d  # noqa: E402
import ground  # noqa: E402
import stp  # noqa: E402
from tree import Form  # noqa: E402
from ways import WAYS  # noqa: E402

FORMS = (dict(), dict(), dict(named=True), dict(constants=True), dict(split=True), dict(permute=True),
         dict(named=True, constants=True, split=True, permute=True))


def ground_of(rnd, strsizes):
    """What a script has beside its cases."""
    return dict(memory=ground.Memory.random(rnd), strsize=rnd.choice(strsizes), firings=rnd.choice((1, 2, 2, 3)))


class D:
    name, suffix = "d", ".d"

    @staticmethod
    def script(rnd, cases):
        writes = rnd.random() < 0.6
        made = [d.Case(random.Random(rnd.getrandbits(64)), k, writes) for k in range(cases)]
        forms = [Form(**rnd.choice(FORMS)) for _ in made]
        return made, forms, ground_of(rnd, d.STRSIZES)

    @staticmethod
    def write(cases, forms, permute, **kwargs):
        return d.Script(cases, forms=forms, permute=random.Random(permute), **kwargs)

    @staticmethod
    def run(path, command, way, kwargs):
        place = "kernel" if way == "kernel" else "target"
        return harness.run([harness.DTRACE, "-x", f"place={place}", "-x", "agent=always", "-x", "bufsize=32m", "-s", path,
                            "-c", command], timeout=120, **WAYS[way])

    @staticmethod
    def lines(result):
        """(what the firings printed, the rows of the aggregations), bytes."""
        out = result.out.encode(errors="surrogateescape")
        body, _, end = out.partition(b"!end\n")
        return ([line for line in body.split(b"\n") if line],
                sorted(line for line in end.split(b"\n") if line))


class Stp:
    name, suffix = "stp", ".stp"

    @staticmethod
    def script(rnd, cases):
        made = [stp.Case(random.Random(rnd.getrandbits(64)), k) for k in range(cases)]
        forms = [Form(**rnd.choice(FORMS)) for _ in made]
        return made, forms, ground_of(rnd, stp.STRSIZES)

    @staticmethod
    def write(cases, forms, permute, **kwargs):
        return stp.Script(cases, forms=forms, permute=random.Random(permute), **kwargs)

    @staticmethod
    def run(path, command, way, kwargs):
        place = "kernel" if way == "kernel" else "target"
        return harness.run([harness.STAP, f"--place={place}", f"-DMAXSTRINGLEN={kwargs['strsize']}", "-DMAXACTION=1000000",
                            "-w", path, "-c", command], timeout=120, **WAYS[way])

    @staticmethod
    def lines(result):
        return result.out.encode(errors="surrogateescape").split(b"\n"), []


LANGUAGES = {"d": D, "stp": Stp}


class Wrong(Exception):
    pass


# Limits that are named; less in one script must do.
TOO_MUCH = re.compile(r"make a program that is too long|program is too complex|cannot be patched due to 16-bit range")


def clean(lines):
    """Texts may have newlines in them."""
    return [line for line in b"\n".join(lines).split(b"\n") if line]


def judge(script, result, lines):
    """Fail when the @result is not what the script's model says."""
    if result.code:
        raise Wrong(f"exit code {result.code}\n{result.err[-3000:]}")
    want, got = [clean(lst) for lst in script.expected()], [clean(lst) for lst in lines(result)]
    want[1].sort()
    got[1].sort()
    for what, a, b in zip(("line", "row"), want, got):
        for k in range(max(len(a), len(b))):
            x, y = (lst[k] if k < len(lst) else None for lst in (a, b))
            if x != y:
                raise Wrong(f"{what} {k}: {y!r}\n  to be {x!r}")
    said = [line for line in result.err.splitlines() if not re.match(r"^(dtrace: error in dt_clause|#)", line)]
    if said:
        raise Wrong("stderr: " + "\n".join(said))


class Runner:
    def __init__(self, options):
        self.options = options
        self.interp = harness.Interp(options.python, harness.interpreters()[options.python])
        self.ran = self.programs = 0

    def attempt(self, language, cases, forms, permute, way, kwargs):
        script = language.write(cases, forms, permute, **kwargs)
        path = self.interp.dir / f"generated{language.suffix}"
        path.write_text(script.text, encoding="latin1")
        command = self.interp.command(kwargs["memory"].program(kwargs["firings"]))
        result = language.run(path, command, way, kwargs)
        if result.code and TOO_MUCH.search(result.err) and len(cases) > 1:
            half = len(cases) // 2
            self.attempt(language, cases[:half], forms[:half], permute, way, kwargs)
            self.attempt(language, cases[half:], forms[half:], permute, way, kwargs)
            return
        self.ran += 1
        self.programs += len(cases)
        judge(script, result, language.lines)

    def wrong(self, *args):
        try:
            self.attempt(*args)
        except Wrong as wrong:
            return str(wrong)
        return None

    def smaller(self, language, cases, forms, permute, way, kwargs):
        """A part of what fails, that fails."""
        kind = self.wrong(language, cases, forms, permute, way, kwargs).split()[0]

        def fails(cases, forms):
            return (self.wrong(language, cases, forms, permute, way, kwargs) or "none").split()[0] == kind

        step = len(cases) // 2
        while step:
            for at in range(0, len(cases), step):
                less = cases[:at] + cases[at + step:], forms[:at] + forms[at + step:]
                if less[0] and fails(*less):
                    cases, forms = less
                    break
            else:
                step //= 2
        for lst in (lst for case in cases for lst in case.parts()):
            k = len(lst) - 1
            while k >= 0:
                one = lst.pop(k)
                if not fails(cases, forms):
                    lst.insert(k, one)
                k -= 1
        for k in range(len(forms)):
            plain = forms[:k] + [Form()] + forms[k + 1:]
            if fails(cases, plain):
                forms = plain
        return cases, forms

    def one(self, number, language):
        rnd = random.Random(f"{self.options.seed} {language.name} {number}")
        cases, forms, kwargs = language.script(rnd, self.options.cases)
        permute = rnd.getrandbits(32)
        ways = [way for way in WAYS if (self.options.way or way) == way and not (way == "kernel" and cases[0].writes)]
        if not self.options.every:
            ways = [rnd.choice(ways)] if ways else []
        for way in ways:
            why = self.wrong(language, cases, forms, permute, way, kwargs)
            if not why:
                continue
            told = f"--seed {self.options.seed} --first {number} --language {language.name} --way {way}: {why}"
            if self.options.reduce:
                cases, forms = self.smaller(language, cases, forms, permute, way, kwargs)
                why = self.wrong(language, cases, forms, permute, way, kwargs)
                text = language.write(cases, forms, permute, **kwargs).text
                told += f"\nsmaller, {forms}: {why}\n{text}"
                if self.options.keep:
                    name = f"{language.name}-{self.options.seed}-{number}{language.suffix}"
                    (self.options.keep / name).write_text(text, encoding="latin1")
            return told
        return None

    def close(self):
        self.interp.close()


def arguments(words=None):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--scripts", type=int, default=None)
    p.add_argument("--seconds", type=float, default=None)
    p.add_argument("--cases", type=int, default=30)
    p.add_argument("--language", choices=LANGUAGES)
    p.add_argument("--way", choices=WAYS)
    p.add_argument("--python", default="3.13")
    p.add_argument("--every", action="store_true", help="each script in every way, not in one of them")
    p.add_argument("--no-reduce", dest="reduce", action="store_false")
    p.add_argument("--keep", type=ground.folder, help="a folder for what fails; made if it is not there")
    options = p.parse_args(words)
    if options.seed is None:
        options.seed = random.randrange(1 << 32)
    return options


def generate(options):
    """What went wrong, a text each."""
    print(f"seed {options.seed}", flush=True)
    end = time.monotonic() + options.seconds if options.seconds else None
    number, failed = options.first, []
    runner = Runner(options)
    try:
        while (options.scripts is None or number < options.first + options.scripts) and not (end and time.monotonic() > end):
            for language in LANGUAGES.values():
                if (options.language or language.name) == language.name:
                    told = runner.one(number, language)
                    if told:
                        failed.append(told)
                        print(told, flush=True)
            number += 1
    finally:
        runner.close()
    print(f"{runner.programs} programs in {runner.ran} scripts, {len(failed)} wrong")
    return failed


if __name__ == "__main__":
    sys.exit(bool(generate(arguments())))
