"""Makes processes as it is told, which do work() and end, or are killed; says how they ended.

A step is the name of a way to make a process, how often it does work(), how it ends, and the steps that it takes itself.  Each
process writes into log/PID beside this file before and after each work(), so that one that is killed has done it, too.
"""
import ctypes
import gc
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from socket import socketpair

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
import work  # noqa: E402

# Is this process, or the one that it comes from by fork, another program than the first (x)?  Has it closed its descriptors (c)?
mark = b"." if __name__ == "__main__" and not sys.argv[1:] else b"x"


def works(n):
    log = os.open(f"{FOLDER}/log/{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(log, mark)
    for _ in range(n):
        os.write(log, b"(")
        work.work()
        os.write(log, b")")
    os.close(log)


# --- how a process ends ---------------------------------------------------------------------------------

def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def killed_inside():
    work.between = kill
    works(1)


def killed_by_the_test():
    open(f"{FOLDER}/kill/{os.getpid()}", "w").close()
    works(1000000)


ENDS = {
    "returns": (0, lambda: None),
    "leaves": (3, lambda: os._exit(3)),
    "exits": (4, lambda: sys.exit(4)),
    "killed": (-signal.SIGKILL, kill),
    "killed inside": (-signal.SIGKILL, killed_inside),
    "killed by the test": (-signal.SIGKILL, killed_by_the_test),
    "terminated": (-signal.SIGTERM, lambda: os.kill(os.getpid(), signal.SIGTERM)),
}


def task(n, end, steps):
    works(n)
    for step in steps:
        make(step)
    ENDS[end][1]()


# --- how it is made -------------------------------------------------------------------------------------

def status(pid):
    found = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(found) if os.WIFSIGNALED(found) else os.WEXITSTATUS(found)


def leaves(step):
    try:
        task(*step[1:])
        os._exit(0)
    except SystemExit as error:
        os._exit(error.code)


def fork(step):
    pid = os.fork()
    if not pid:
        leaves(step)
    return status(pid)


def fork_and_finish(step):
    """The child ends as the interpreter does."""
    pid = os.fork()
    if not pid:
        task(*step[1:])
        sys.exit(0)
    return status(pid)


def fork_in_c(step):
    """Python's functions at fork are not called."""
    pid = ctypes.PyDLL(None).fork()
    if not pid:
        leaves(step)
    return status(pid)


def fork_from_thread(step):
    said = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=lambda: said.append(fork(step)))
        thread.start()
        thread.join()
    return said[0]


def daemon(step, closes=False):
    """Its father has ended; how it ends is told by another one."""
    global mark
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        if not os.fork():
            os.chdir("/")
            if closes:
                mark = b"c"
                os.closerange(3, into)
                os.closerange(into + 1, 2000)
                works(0)
            os.write(into, str(fork(step)).encode())
        os._exit(0)
    assert status(pid) == 0
    os.close(into)
    with open(out) as pipe:
        return int(pipe.read())


def words(step):
    return [sys.executable, "-W", "ignore", os.path.abspath(__file__), json.dumps(step[1:])]


def run(step):
    return subprocess.run(words(step)).returncode


def run_after_python(step):
    return subprocess.run(words(step), preexec_fn=lambda: works(1)).returncode


def run_by_shell(step):
    return subprocess.run(["sh", "-c", 'exec "$@"', "sh", *words(step)]).returncode


def spawn(step):
    return status(os.posix_spawn(sys.executable, words(step), os.environ))


def fork_and_execute(step):
    pid = os.fork()
    if not pid:
        works(1)
        os.execv(sys.executable, words(step))
    return status(pid)


def by_multiprocessing(how):
    def made(step):
        process = multiprocessing.get_context(how).Process(target=task, args=step[1:])
        process.start()
        process.join()
        return process.exitcode
    return made


stayers = []


def stays(step):
    """It does a work() whenever it is told to, and lives as long as this process."""
    ours, its = socketpair()
    pid = os.fork()
    if not pid:
        for socket in ours, *(socket for _, socket in stayers):
            socket.close()
        works(step[1])
        its.send(b"done")
        while word := its.recv(100):
            its.send(json.dumps(report() if word == b"report" else works(1)).encode())
        os._exit(0)
    its.close()
    assert ours.recv(100) == b"done"
    stayers.append((pid, ours))
    return ENDS[step[2]][0]


def ask_stayers(word):
    said = []
    for _, socket in stayers:
        socket.send(word)
        said.append(json.loads(socket.recv(1000)))
    return said


WAYS = {way.__name__: way for way in (fork, fork_and_finish, fork_in_c, fork_from_thread, daemon, run, run_after_python, run_by_shell,
                                      spawn, fork_and_execute, stays)}
WAYS["daemon that closes"] = lambda step: daemon(step, True)
for how in "fork", "spawn", "forkserver":
    WAYS[f"multiprocessing {how}"] = by_multiprocessing(how)


def make(step):
    said = WAYS[step[0]](step)
    if said != ENDS[step[2]][0]:
        print("wrong:", step, said, file=sys.stderr, flush=True)


def report():
    """What hooks are seen: its process, callbacks of gc, tools of sys.monitoring, import and the evaluator."""
    monitoring, api = getattr(sys, "monitoring", None), ctypes.pythonapi
    api.PyInterpreterState_Get.restype = api._PyInterpreterState_GetEvalFrameFunc.restype = ctypes.c_void_p
    evaluator = api._PyInterpreterState_GetEvalFrameFunc(ctypes.c_void_p(api.PyInterpreterState_Get()))
    return [os.getpid(), len(gc.callbacks), [monitoring.get_tool(i) for i in range(6)].count("dtap") if monitoring else 0,
            type(sys.modules["_frozen_importlib"]._find_and_load).__name__,
            evaluator == ctypes.cast(api._PyEval_EvalFrameDefault, ctypes.c_void_p).value]


def main():
    if sys.argv[1:]:
        task(*json.loads(sys.argv[1]))
        return
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "go\n":
            break
        if line == "report\n":
            print(json.dumps([report(), *ask_stayers(b"report")]), flush=True)
            continue
        for step in json.loads(line):
            works(1)
            ask_stayers(b"work")
            make(step)
        works(1)
        print("done", flush=True)
    # They have pipes to multiprocessing's helpers, whose end is waited for.
    for pid, socket in stayers:
        socket.close()
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
