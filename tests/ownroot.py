"""
Two things that the tests need of the place in which they run, and that root can give them in a mount namespace of their own.

In a chroot the root need not be a mount point.  The kernel then refuses what many tests do, a mount namespace of which the
mounts are private ("cannot change root filesystem propagation"), and user namespaces: make_mount_point() mounts the root
onto itself.

Tests with other users start programs of the build.  A checkout below a home is often where others may not go: where_all_can()
mounts it somewhere else as well.
"""
import contextlib
import ctypes
import os
import pathlib
import tempfile

CLONE_NEWNS = 0x00020000        # linux/sched.h
MNT_DETACH = 2                  # linux/fs.h
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000       # linux/mount.h

_libc = ctypes.CDLL(None, use_errno=True)


def _unshare():
    """Begin a mount namespace; whether this process may."""
    return _libc.unshare(CLONE_NEWNS) == 0


def _mount(source, target, flags):
    if _libc.mount(os.fsencode(source) if source else None, os.fsencode(target), None, ctypes.c_ulong(flags), None):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), target)


def is_mount_point():
    """Whether a line of mountinfo has this process's root as its mount point (proc(5), /proc/pid/mountinfo, field 5)."""
    with open("/proc/self/mountinfo") as lines:
        return any(line.split()[4] == "/" for line in lines)


def make_mount_point():
    """
    Give this process, and those that it starts, a root that is a mount point.  Nothing is done where it is one, or to a
    process that may not.  Raises OSError.
    """
    if os.geteuid() or is_mount_point() or not _unshare():
        return
    cwd = os.getcwd()
    root = os.open("/", os.O_PATH)
    below = tempfile.mkdtemp(prefix="dtap-root-")
    # chroot(2): a process whose working directory is above its root can go up to the root of all mounts.
    os.chroot(below)
    os.fchdir(root)
    while not os.path.samefile(".", ".."):
        os.chdir("..")
    os.chroot(".")
    path = os.readlink(f"/proc/self/fd/{root}")
    _mount(None, "/", MS_REC | MS_PRIVATE)
    _mount(path, path, MS_BIND | MS_REC)
    os.chdir(path)
    # pivot_root(2), "pivot_root(".", ".")": the old root is on top of the new one then.  Refused below an initramfs;
    # after a chroot there are no user namespaces (unshare(2), EPERM).
    if not _libc.pivot_root(b".", b"."):
        _libc.umount2(b".", MNT_DETACH)
    os.chroot(".")
    os.chdir(cwd)
    os.rmdir(below)
    os.close(root)


@contextlib.contextmanager
def where_all_can(folder):
    """The same folder by a path that every user may go: folder itself, or a mount of it for the time of the block."""
    if os.geteuid() or all(above.stat().st_mode & 0o001 for above in (folder, *folder.parents)) or not _unshare():
        yield folder
        return
    _mount(None, "/", MS_REC | MS_PRIVATE)
    # What is mounted here is the checkout itself, so nothing but an empty folder is ever removed.
    above = pathlib.Path(tempfile.mkdtemp(prefix="dtap-check-"))
    above.chmod(0o755)
    there = above / folder.name
    there.mkdir()
    _mount(folder, there, MS_BIND | MS_REC)
    try:
        yield there
    finally:
        _libc.umount2(os.fsencode(there), MNT_DETACH)
        there.rmdir()
        above.rmdir()
