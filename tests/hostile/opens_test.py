"""Who opens files by a path.  What others could have put there is opened by base/file.c alone; each other place says here why
what it opens is ours."""
import re

import harness

KERNEL = "a file of /proc or /sys, which the kernel makes"       # where the paths in the text alone do not show it
USER = "named on the command line or by the script, for us to read or write with our own user's rights; may be a pipe on purpose"

OURS = {
    "agent/copies.c": "/proc/self/maps, in the traced process",
    "base/file.c": "the one module",
    "bpf/rt/rtgen.c": "a tool of the build",
    "cmd/agent.c": "/dev/null, and a new file (O_EXCL)",
    "cmd/dtrace.c": USER,
    "cmd/header.c": USER,
    "cmd/ready/diff.c": USER,
    "cmd/ready/find.c": "the folders of commands: dtap's own, and the user's",
    "cmd/ready/head.c": USER,
    "cmd/ready/output.c": USER,
    "cmd/ready/tree_out.c": "a page that is installed with dtap",
    "cmd/stream.c": "/dev/null",
    "cmd/serve/outputs.c": "a file or pipe that the configuration names, no link, of its kind alone (fstat); a pipe does not wait",
    "cmd/serve/serve.c": "a new file (O_EXCL), in the folder of the text file that the configuration names",
    "cmd/serve/spool.c": "a folder of the service alone, which others cannot write to (fstat), and files in it by its descriptor",
    "cmd/stap.c": "/dev/null",
    "cmd/stap_output.c": USER,
    "lang/source.c": USER,
    "out/sink.c": USER,
    "base/paths.c": "folders, whose names it reads; who opens what it found does so by file_open()",
    "base/guarded.c": "folders, by O_PATH, whose owner it checks",
    "probe/procs.c": KERNEL,
    "probe/pycode.c": KERNEL,
    "probe/pystacks.c": KERNEL,
    "target/agent.c": "the agent's object, as target/inject.c",
    "target/answer.c": "the agent's object, as target/inject.c",
    "target/starts.c": "an O_PATH descriptor of a program, of which the kernel is asked to report its exec; it is never read",
    "target/inject.c": "the agent's object, which is installed with dtap or named by the user",
    "vm/helpers.c": KERNEL,
}


def is_of_the_kernel(text):
    """All paths in it are below /proc or /sys."""
    paths = re.findall(r'"(/[\w.%]+/?)', text)
    return bool(paths) and all(re.match(r"/(proc|sys)(/|$)", path) for path in paths)


def test_each_is_known():
    found = set()
    for path in sorted((harness.TOP / "src").rglob("*.c")):
        code = re.sub(r'"(\\.|[^"\\])*"|/\*.*?\*/', "", path.read_text(), flags=re.S)
        if re.search(r"(?<![\w>.])(open|openat|open64|fopen|freopen|opendir)\b *\(|syscall\(SYS_open", code):
            name = str(path.relative_to(harness.TOP / "src"))
            if name in OURS or not is_of_the_kernel(path.read_text()):
                found.add(name)
    assert found - set(OURS) == set(), "open files of others by file_open(), or say here why yours is none"
    assert set(OURS) - found == set(), "these open nothing any more"
