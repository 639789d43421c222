"""Types of C in SystemTap scripts: what a value points to, bit fields, arrays of arrays; the program prints its own."""
import os
import subprocess

import pytest

import harness

pytestmark = pytest.mark.needs_bpf

SOURCE = os.path.join(os.path.dirname(__file__), "data", "types.c")


@pytest.fixture(scope="module", params=["-O0", "-O2 -gdwarf-4", "-O0 -gdwarf-2 -gstrict-dwarf"])
def program(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("types") / "types"
    subprocess.run(["gcc", "-g", *request.param.split(), SOURCE, "-o", path], check=True)
    return path


def run(program, body, tmp_path, before=""):
    """What stap printed, and what the program did."""
    out = tmp_path / "out"
    script = '%s probe process("%s").function("work") { %s }' % (before, program, body)
    result = harness.stap("-o", str(out), "-e", script, "-c", str(program))
    assert result.code == 0, result
    return out.read_text().splitlines(), result.out.splitlines()


WHOLE = '''printf("%%d %%d %%d %%d %%d\\n", %(w)s->n, %(w)s->arr[1]->y, %(w)s->bits->a, %(w)s->bits->b, %(w)s->bits->c)
    printf("%%d %%d %%d %%d\\n", %(w)s->packed->p, %(w)s->packed->q, %(w)s->packed->r, %(w)s->packed->s)
    printf("%%d %%d %%d %%d %%s\\n", %(w)s->matrix[1][$i], %(w)s->matrix[0][2], %(w)s->color, %(w)s->u->bytes[1],
           user_string(%(w)s->next->name))'''


def test_members(program, tmp_path):
    traced, own = run(program, WHOLE % {"w": "$w"}, tmp_path)
    assert len(own) == 3 and traced == own


def test_of_variable(program, tmp_path):
    """Also in a variable the pointer is one to its structure."""
    traced, own = run(program, "w = $w " + WHOLE % {"w": "w"}, tmp_path)
    assert len(own) == 3 and traced == own


def test_ways(program, tmp_path):
    """Through globals, arrays, parameters and results of functions, @cast, &, conditions and foreach."""
    traced, _ = run(program, '''g = $w
        a[1] = g->next
        foreach (k in a) println(g->n, " ", a[k]->n, " ", next_of($w)->n, " ", number(a[k]))
        c = @cast($w + 0, "struct whole")
        p = &$w->arr[1]
        println(c->n, " ", p->x, " ", ($i ? g : $w)->n, " ", user_string_n(&c->next->name[0], 3))''', tmp_path,
                    "global g, a function next_of(w) { return w->next } function number(w) { return w->n }")
    assert traced == ["7 9 9 9", "7 3 7 sec"]


@pytest.mark.parametrize("what, value", [
    ("$w->bits$", "{.a=5, .b=-3, .c=78187493520}"), ("$w->matrix$", "[[...], [...]]"),
    ("$w->matrix$$", "[[1, 2, 3], [4, -5, 6]]"), ("w->arr$$", "[{.x=1, .y=2}, {.x=3, .y=4}]"), ("w->full$", '"full"'),
    ('@cast(w, "struct whole")->u$', "{.i=1094861636, .bytes=[...]}"),
])
def test_pretty(program, tmp_path, what, value):
    traced, _ = run(program, f"w = $w println({what})", tmp_path)
    assert traced[0].replace('.bytes="DCBA"', ".bytes=[...]") == value


@pytest.mark.parametrize("body, why", [
    ("x = 3 println(x->n)", "unknown type in dereference"), ("w = $w println(w->nothing)", "unable to find member 'nothing' for struct whole (alternatives: n, name, "),
    ("println(&$w->bits->a)", "a bit field has no address"),
    ("w = $w w = &$w->arr[0] println(w->n)", "unknown type in dereference"),
])
def test_refused(program, body, why):
    result = harness.stap("-e", 'probe process("%s").function("work") { %s }' % (program, body))
    assert result.code == 1 and why in result.err


def test_result(program, tmp_path):
    """With its sign and its structure."""
    script = "".join('probe process("%s").function("%s").return { %s }\n' % (program, function, body) for function, body in (
        ("negative", 'println($return, " ", $$return)'), ("narrow", "println($return)"),
        ("other", 'println($return->n, " ", user_string($return->name)) r = $return println(r->n)'),
        ("nothing", 'println("[", $$return, "]", @defined($return))')))
    out = tmp_path / "out"
    result = harness.stap("-o", str(out), "-e", script, "-c", str(program))
    assert result.code == 0, result
    assert out.read_text().splitlines() == ["-5 return=0xfffffffffffffffb", "-55", "10 second", "10", "[]0"]


@pytest.mark.parametrize("function, why", [("nothing", "has no return value"), ("real", "is a floating-point number")])
def test_no_result(program, function, why):
    result = harness.stap("-e", 'probe process("%s").function("%s").return { println($return) }' % (program, function))
    assert result.code == 1 and why in result.err


@pytest.mark.machine_pids
def test_kernel():
    """Of the kernel's types its own information tells."""
    script = '''probe kernel.trace("sched_process_exit") { if (pid() != target()) next
        t = @cast(task_current(), "task_struct", "kernel<linux/sched.h>")
        println(t->pid == tid(), t->real_parent->tgid == ppid(), " ", t->comm$, " ", kernel_string(t->comm)) }'''
    result = harness.stap("-e", script, "-c", "sleep 0")
    assert result.code == 0 and result.out == '11 "sleep" sleep\n', result


def test_tasks():
    script = '''probe kernel.trace("sched_process_exit") { if (!target_set_pid(pid())) next
        println(task_cpu(task_current()) == cpu(), task_start_time(tid()) > 0, " ", task_ancestry(task_current(), 0)) }'''
    result = harness.stap("-e", script, "-c", "sh -c 'sleep 0; true'")
    assert result.code == 0
    assert [line[:3] + line[line.index("stap"):] for line in result.out.splitlines()] == [
        "11 stap=>sh=>sleep", "11 stap=>sh"], result
