"""Random Python programs that know what a tracer has to count in them.

A program is a plan: steps, each a call of a function of a known shape a number of times, in the main thread, in
threads, in forked children, in programs that it runs, and in itself once more after an exec of its own file.  What
each function is entered for follows from the plan alone.
"""
import json
import random

# Each function, its steps' entries (a frame begins or is resumed) for the argument n, and what it gives for it.
SHAPES = {
    "plain": ("def {f}(n):\n    return n + 1\n", lambda n: 1, lambda n: n + 1),
    "local": ("def {f}(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n",
              lambda n: 1, lambda n: n * (n - 1) // 2),
    "deep": ("def {f}(n):\n    if not n:\n        return 0\n    return {f}(n - 1) + 1\n", lambda n: n + 1, lambda n: n),
    "generator": ("def {f}(n):\n    for i in range(n):\n        yield i\n", lambda n: n + 1,
                  lambda n: n * (n - 1) // 2),
    "raising": ("def {f}(n):\n    raise ValueError(n)\n", lambda n: 1, lambda n: n),
    "key": ("def {f}(n):\n    return -n\n", lambda n: n, lambda n: n * (n - 1) // 2),
}

TEXT = '''
import gc, json, os, subprocess, sys, threading, time

folder, part = os.path.dirname(os.path.abspath(__file__)), (sys.argv[1:] or ["first"])[0]
if part == "child":
    plan = json.loads(sys.argv[2])
else:
    with open(os.path.join(folder, "plan")) as file:
        plan = json.load(file)
    plan = plan[2:] if part == "again" else plan

{functions}
use = {{
    "plain": lambda f, n: f(n), "local": lambda f, n: f(n), "deep": lambda f, n: f(n),
    "generator": lambda f, n: sum(f(n)), "key": lambda f, n: sum(sorted(range(n), key=f)),
}}


def raising(f, n):
    try:
        f(n)
    except ValueError as error:
        return error.args[0]


use["raising"] = raising


def write(name, text):
    path = os.path.join(folder, name)
    with open(path + ".new", "w") as out:
        out.write(text)
    os.rename(path + ".new", path)


def wait_for(name):
    while not os.path.exists(os.path.join(folder, name)):
        time.sleep(0.005)


def steps(todo):
    total = 0
    for shape, name, n, times in todo:
        f, how = globals()[name], use[shape]
        for _ in range(times):
            total += how(f, n)
    return total


def work(part):
    total, threads, results, children = 0, [], [], []
    for kind, todo in part:
        if kind == "here":
            total += steps(todo)
        elif kind == "collect":
            gc.collect()
        elif kind == "thread":
            threads.append(threading.Thread(target=lambda todo=todo: results.append(steps(todo))))
            threads[-1].start()
        elif kind == "fork":
            for thread in threads:
                thread.join()
            child = os.fork()
            if not child:
                os._exit(steps(todo) % 100)
            children.append((child, steps_of(todo) % 100))
        elif kind == "run":
            done = subprocess.run([sys.executable, __file__, "child", json.dumps([["here", todo]])],
                                  stdout=subprocess.PIPE)
            assert int(done.stdout) == steps_of(todo), done
    for thread in threads:
        thread.join()
    for child, want in children:
        status = os.waitpid(child, 0)[1]
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == want, status
    return total + sum(results)


sums = {sums}


def steps_of(todo):
    return sum(sums[shape][n] * times for shape, name, n, times in todo)


def plain_call(n):
    return n


def speed():
    best = None
    for _ in range(5):
        begin = time.thread_time()
        for _ in range(20000):
            {first}
        took = time.thread_time() - begin
        best = took if best is None else min(best, took)
    return best


if part == "child":
    print(work(plan))
    sys.exit(0)
if part == "first":
    write("speed", repr(speed()))
    write("pid", str(os.getpid()))
    wait_for("go")
total = work(plan[0])
assert total == plan[1], (total, plan[1])
if len(plan) > 2:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print("right", flush=True)
write("done", "")
wait_for("measure")
# The agent may be in the middle of taking them away.
for _ in range(2000):
    tools = [name for name in map(sys.monitoring.get_tool, range(6)) if name] if hasattr(sys, "monitoring") else []
    hooks = [str(hook) for hook in (sys.gettrace(), sys.getprofile(), *tools) if hook]
    if not hooks:
        break
    time.sleep(0.005)
write("result", json.dumps([speed(), hooks]))
wait_for("stop")
sys.exit({code})
'''


class Program:
    def __init__(self, rnd, execs):
        self.names = []                                         # (shape, name)
        for k in range(rnd.randint(3, 9)):
            self.names.append((rnd.choice(list(SHAPES)), f"soak_{k}"))
        self.names.append(("plain", "soak_plain"))
        self.code = rnd.choice((0, 0, 3, 77))
        self.counts = {name: 0 for _, name in self.names}       # entries in the target itself
        self.threads = 0
        self.parts = [self._part(rnd) for _ in range(rnd.choice((1, 2)) if execs else 1)]
        self.lines = {}
        self.text = TEXT.format(
            functions=self._functions(), code=self.code, first="plain_call(1)",
            sums={shape: [value(n) for n in range(13)] for shape, (_, _, value) in SHAPES.items()})

    def _functions(self):
        text, line = "", TEXT[:TEXT.index("{functions}")].count("\n") + 1
        for shape, name in self.names:
            self.lines[name] = line
            text += SHAPES[shape][0].format(f=name) + "\n"
            line += SHAPES[shape][0].count("\n") + 1
        return text

    def _steps(self, rnd, counted=True, most=400):
        todo = []
        for _ in range(rnd.randint(1, 5)):
            shape, name = rnd.choice(self.names)
            n, times = rnd.randint(0, 12), rnd.randint(0, most)
            todo.append([shape, name, n, times])
            if counted:
                self.counts[name] += SHAPES[shape][1](n) * times
        return todo

    def _part(self, rnd):
        part, total = [], 0
        for _ in range(rnd.randint(1, 7)):
            kind = rnd.choice(("here", "here", "thread", "thread", "fork", "run", "collect"))
            counted = kind in ("here", "thread")
            todo = self._steps(rnd, counted, 400 if kind != "run" else 20)
            if counted:
                total += sum(SHAPES[shape][2](n) * times for shape, _, n, times in todo)
            if kind == "collect":
                todo = []
            self.threads += kind == "thread"
            part.append([kind, todo])
        return part, total

    @property
    def plan(self):
        return json.dumps([item for part in self.parts for item in part])


if __name__ == "__main__":
    program = Program(random.Random(1), True)
    print(program.text, program.plan, program.counts, sep="\n")
