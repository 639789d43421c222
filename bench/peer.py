"""Running bpftrace, the peer."""
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
VERSION = subprocess.run(["bpftrace", "--version"], stdout=subprocess.PIPE, text=True,
                         check=True).stdout.strip().replace("bpftrace v", "bpftrace ")


def environment():
    """With a shim that lets bpftrace start where RLIMIT_MEMLOCK cannot be raised; see rlimit.c."""
    if not environment.shim:
        environment.folder = tempfile.TemporaryDirectory(prefix="dtap-bench-")
        environment.shim = f"{environment.folder.name}/rlimit.so"
        subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-O2", "-o", environment.shim,
                        HERE / "rlimit.c"], check=True)
    return dict(os.environ, LD_PRELOAD=environment.shim)


environment.shim = None


def argv(program):
    return ["bpftrace", "-e", program]


def marker(interp, name):
    """bpftrace's name of a marker.  System-wide: with -p or -c it does not find files in another root."""
    return f"usdt:{interp.executable}:python:{name.replace('-', '__')}"
