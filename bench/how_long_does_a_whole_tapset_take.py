"""All eight python.* aliases in one SystemTap script on Python 3.9: passes 1 to 4, and all from start to exit

The goal: at most 50 ms for the passes.
"""
import os
import re
import subprocess
import tempfile

import harness
import measure
import peer

ROUNDS = 11

SCRIPT = """
probe python.function.entry {
    printf("%s%s %s:%d\\n", thread_indent(1), funcname, filename, lineno)
    printf("%d %d %d %s %s\\n", pid(), tid(), uid(), execname(), ctime(gettimeofday_s()))
}
probe python.function.return { printf("%s%s\\n", thread_indent(-1), funcname) }
probe python.line { printf("%s:%d %s\\n", filename, lineno, pp()) }
probe python.gc.start { printf("gc %d\\n", generation) }
probe python.gc.done { printf("gc: %d, %d us\\n", collected, gettimeofday_us()) }
probe python.import.start { printf("import %s\\n", modulename) }
probe python.import.done { printf("imported %s %d\\n", modulename, found) }
probe python.audit { printf("audit %s\\n", event) }
probe timer.ms(1) { exit() }
"""

# Of each marker what its arguments are: strings first.
MARKERS = {"function-entry": "s%s%d", "function-return": "s%s%d", "line": "s%s%d", "gc-start": "d", "gc-done": "d",
           "import-find-load-start": "s", "import-find-load-done": "s%d", "audit": "s"}


def peer_script(interp):
    def values(kinds):
        return ", ".join(f"str(arg{n})" if kind == "s" else f"(int64)arg{n}" for n, kind in enumerate(kinds.split("%")))

    return " ".join(f'{peer.marker(interp, name)} {{ printf("%{kinds}\\n", {values(kinds)}); }}'
                    for name, kinds in MARKERS.items()) + " interval:ms:1 { exit(); }"


def run():
    interp = measure.interpreter("3.9")
    passes, dtap, theirs = [], [], []
    with tempfile.TemporaryDirectory(prefix="dtap-bench-") as folder:
        os.symlink(interp.executable, f"{folder}/python3")      # the tapset looks for it in $PATH
        env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
        stap = [str(harness.STAP), "-e", SCRIPT]
        for _ in range(ROUNDS):
            said = subprocess.run([*stap, "-v", "-p4"], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, check=True).stderr
            passes.append(sum(int(ms) for ms in re.findall(r"/(\d+)real ms", said)))
            dtap.append(measure.wall_and_memory(stap, env)[0])
            theirs.append(measure.wall_and_memory(peer.argv(peer_script(interp)), peer.environment())[0])
    interp.close()
    measure.row("passes 1 to 4", passes, "ms")
    measure.row("dtap", dtap, "ms")
    measure.row(peer.VERSION, theirs, "ms")
    measure.ratio(dtap, theirs)
