"""The ends of threads, with their names, against what the program says itself."""
import re

import harness
import pytest

pytestmark = [pytest.mark.needs_root, pytest.mark.interps(*harness.VERSIONS, "3.13t")]

PROGRAM = """
import _thread, concurrent.futures, sys, threading, time
ended, asked = [], []
class Own(threading.Thread):
    def run(self):
        works(self.name)
class Odd(threading.Thread):
    def __getattribute__(self, name):
        caller = sys._getframe().f_back
        if name == "_name" and (caller is None or caller.f_code.co_filename != threading.__file__):
            asked.append(name)
        return super().__getattribute__(name)
    def run(self): pass
def works(name):
    if "renamed" in name:
        threading.current_thread().name += " later"
    if "starts" in name:
        inner = threading.Thread(target=works, args=("inner",), name="inner of " + name)
        inner.start()
        inner.join()
        ended.append(inner.name)
    if "exits" in name:
        raise SystemExit
    if name == "raw":
        latch.release()
latch = threading.Lock()
latch.acquire()
names = ["plain", "renamed", "starts", "exits", "\\u00fcr\\u20ac\\U0001f600", "", "x" * 200, "two words"]
threads = [Own(name=name or None) for name in names] + [threading.Thread(target=works, args=(name,), name="target " + name) for name in names]
threads += [Odd(name="odd"), threading.Timer(0, works, ("timer",))]
for t in threads: t.start()
for t in threads: t.join()
ended += [t.name for t in threads]
with concurrent.futures.ThreadPoolExecutor(2, "pool") as pool:
    for k in range(20): pool.submit(works, "pooled").result()
ended += [t for t in ("pool_%d" % k for k in range(len(pool._threads)))]
running = _thread._count()
_thread.start_new_thread(works, ("raw",))
latch.acquire()                                  # it runs, and is counted
while _thread._count() > running: time.sleep(0.001)
stays = threading.Thread(target=threading.Event().wait, daemon=True, name="stays")
stays.start()
for name in ended: print("want <%s>" % name)
print("asked", len(asked))
"""

SCRIPT = r"""
BEGIN { n = 0; there = 0; }
python$target:::thread-start { self->started = 1; }
python$target:::thread-finish /copyinstr(arg2) == "_bootstrap"/
{ printf("got <%s>\n", copyinstr(arg0)); n++; there += self->started && basename(copyinstr(arg1)) == "threading.py"; }
python$target:::thread-finish /copyinstr(arg2) == "works"/ { raw++; printf("raw <%s> %d\n", copyinstr(arg0), (int)arg3 > 1); }
END { printf("all %d\n", n == there); }
"""


def rows(text, prefix):
    return sorted(re.findall(rf"^{prefix} (.*)$", text, flags=re.M))


def test_finish(dtrace, interp):
    result = dtrace("-q", "-x", "place=target", "-x", "strsize=1024", "-n", SCRIPT, "-c", interp.command(PROGRAM))
    got = rows(result.out, "got")
    assert result.code == 0 and not result.err and len(got) > 20, result
    assert got == rows(result.out, "want") and rows(result.out, "raw") == ["<> 1"] and rows(result.out, "all") == ["1"] and \
        rows(result.out, "asked") == ["0"], result


@pytest.mark.needs_bpf
def test_in_the_kernel(dtrace, interp):
    result = dtrace("-q", "-x", "place=kernel", "-x", "strsize=1024", "-n", SCRIPT, "-c", interp.command(PROGRAM))
    assert result.code == 0 and rows(result.out, "got") == rows(result.out, "want"), result


# What a thread begins with, if not with threading's own function: what is known beforehand, and what is not.
BEGINNINGS = """
import _thread, functools, sys, threading, time
done = threading.Semaphore(0)
def plain(n=0): nested(n); done.release()
def nested(n):
    if n: plain_again(n - 1)
def plain_again(n): nested(n)
def raises():
    done.release()
    raise SystemExit
def recurses(n):
    if n: recurses(n - 1)
    else: done.release()
class Work:
    def method(self): done.release()
    def __call__(self): done.release()
    @classmethod
    def of_class(cls): done.release()
    @staticmethod
    def of_none(): done.release()
plain()
done.acquire()
want = {"plain": (plain, ()), "again": (plain, (3,)), "raises": (raises, ()), "recurses": (recurses, (4,)), "method": (Work().method, ()),
        "of_class": (Work.of_class, ()), "of_none": (Work.of_none, ()), "partial": (functools.partial(plain, 2), ()),
        "called": (Work(), ()), "late": (plain, ())}
running = _thread._count()
for fn, args in want.values():
    for k in range(3):
        _thread.start_new_thread(fn, args)
        done.acquire()
        while _thread._count() > running: time.sleep(0.001)
plain()
"""


def test_what_a_thread_begins_with(dtrace, interp):
    result = dtrace("-q", "-x", "place=target", "-n", """
        python$target:::thread-start { @[strjoin("start ", copyinstr(arg1))] = count(); self->began = 1; }
        python$target:::thread-finish /self->began/ { @[strjoin("finish ", copyinstr(arg2))] = count(); self->began = 0; }
        END { printa("got %s %@d\\n", @); }""", "-c", interp.command(BEGINNINGS))
    want = {"plain": 12, "raises": 3, "recurses": 3, "method": 3, "of_class": 3, "of_none": 3, "__call__": 3}
    assert result.code == 0 and not result.err and rows(result.out, "got") == sorted(
        f"{what} {name} {n}" for what in ("start", "finish") for name, n in want.items()), result
