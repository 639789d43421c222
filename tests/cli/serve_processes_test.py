"""A script of dtap serve counts exactly while others, and another service, come and go, and processes begin, end and are killed."""
import signal

import pytest

import harness
from agent.agent_test import end
from agent.processes_test import SEED, WAYS, Program, check_clean, steps_of
from agent.sessions_test import dice_of
from serving import Service, programs, rule, serve, total       # noqa: F401: serve and programs are fixtures

pytestmark = [pytest.mark.needs_root, pytest.mark.needs_bpf]

ROUNDS, STEPS = (6, 12) if harness.NIGHTLY else (2, 4)
LEAVES = 4          # of a work()
# Helpers of multiprocessing live on, and could be taken for the program that is waited for.
QUICK = [way for way in WAYS if way not in ("multiprocessing spawn", "multiprocessing forkserver")]

OTHERS = {
    "leaves": "{ command: calls leaf, rule: mine }",
    "all": "{ command: calls, rule: mine }",
    "gc": "{ command: gc, rule: mine }",
    "lines": """
    rule: mine
    program: |
      python*:::line { @n[arg2] = count(); }""",
    "functions": """
    rule: mine
    program: |
      py*:work:*:return { @n[probefunc] = count(); }""",
}


def config(dice, rules):
    others = dice.sample([*OTHERS], dice.randrange(4))
    return (f"listen: 127.0.0.1:0\n{rules}scripts:\n  exact: {{ command: calls leaf, rule: mine }}\n" +
            "".join(f"  {name}: {OTHERS[name]}\n" for name in others))


def write(file, text):
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def attached(service):
    return total(service.metrics(), "dtap_serve_attached_total", script="exact")


def check(service, live, why):
    found = service.metrics()
    works = [row for program in live for row in program.works().values()]
    missed = sum(total(found, f"dtap_serve_{what}_total", script="exact") for what in ("refused", "unseen", "begun"))
    least = LEAVES * sum(done for done, _, anew, closed in works if not closed and not (anew and missed))
    most = LEAVES * sum(begun for _, begun, *_ in works)
    assert least <= total(found, "dtap_exact_calls_total", function="leaf") <= most, (least, most, missed, works, why, service.lines)
    lost = {key: n for key, n in found.items() if key[0] == "dtap_serve_lost_total" and ("script", "exact") in key and n}
    assert not lost, (lost, why, service.lines)
    assert total(found, "dtap_serve_script_starts_total", script="exact") == 1, (why, service.lines)


class Second:
    """Another service, which comes and goes, or is killed."""

    def __init__(self, file):
        self.file, self.service = file, None

    def turn(self, dice, rules):
        if self.service:
            self.end(dice.choice((signal.SIGKILL, signal.SIGTERM)))
            return
        write(self.file, config(dice, rules))
        self.service = Service(self.file)
        if dice.random() < 0.7:
            self.service.heard("metrics at")

    def end(self, how=signal.SIGTERM):
        if self.service:
            self.service.end(how)
        self.service = None


def test_reloads(interp, serve, programs, monkeypatch, tmp_path):  # noqa: F811
    dice, rules = dice_of("serve", interp.version), rule(programs)
    monkeypatch.setenv("DTAP_SERVE_TEST", programs.mark)
    service, second, live, ended, why = serve(config(dice, rules)), Second(tmp_path / "second.yaml"), [], [], [SEED]
    try:
        service.until(lambda found: total(found, "dtap_serve_script_up", script="exact") == 1, "the script's start")
        for number in range(ROUNDS):
            before = attached(service)
            live.append(Program(interp, f"program{number}"))
            service.until(lambda found: total(found, "dtap_serve_attached_total", script="exact") > before, "the program")
            for program in live:
                why.append(steps_of(dice, STEPS, QUICK))
                program.begin(why[-1])
            while [program for program in live if program.is_at_work()]:
                if dice.random() < 0.3:
                    second.turn(dice, rules)
                    continue
                write(service.child.args[3], config(dice, rules))
                service.child.send_signal(signal.SIGHUP)
                if dice.random() < 0.7:
                    attached(service)
            for program in live:
                assert program.child.stdout.readline() == "done\n", (why, program.child.communicate())
            check(service, live + ended, why)
            if number and dice.random() < 0.5:
                ended.append(live.pop(0))
                assert end(ended[-1].child) == []
        second.end()
        how = dice.choice((signal.SIGTERM, signal.SIGKILL))
        assert service.end(how) == (0 if how == signal.SIGTERM else -how), service.lines
        for program in live:
            check_clean(program, why)
            assert end(program.child) == []
    finally:
        for program in live:
            program.child.kill()
        second.end(signal.SIGKILL)
