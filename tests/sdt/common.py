"""What the tests of this folder share: running tools, reading notes, reporting to Meson."""

import os
import re
import shutil
import subprocess
import sys

# tools/check sets it with --more.  Without it a compiler makes one of its builds of a program, and the next one of the next program.
MORE = bool(os.environ.get('DTAP_MORE'))
HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, '..', '..', 'include')
SYSTEMTAP = [d for d in ('/usr/include/x86_64-linux-gnu', '/usr/include')
             if os.path.exists(d + '/sys/sdt.h')
             and os.path.exists(d + '/sys/sdt-config.h')][:1]


class Report:
    """Counts checks; prints failures at once; the exit status is Meson's (77: everything skipped)."""

    def __init__(self):
        self.passed = self.failed = 0
        self.skips = set()

    def ok(self, what, condition, details=''):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print('FAIL %s\n%s' % (what, details), flush=True)
        return condition

    def skip(self, what):
        if what not in self.skips:
            self.skips.add(what)
            print('SKIP %s' % what, flush=True)

    def finish(self):
        print('%d passed, %d failed, %d skipped' % (self.passed, self.failed, len(self.skips)))
        sys.exit(1 if self.failed else 0 if self.passed else 77)


def some(builds, turn):
    """Those of @builds that are tried at the @turn-th place."""
    return builds if MORE else [builds[turn % len(builds)]]


def have(tool):
    return shutil.which(tool) is not None


def run(argv, **kwargs):
    """(exit status, output and messages)"""
    kwargs.setdefault('timeout', 120)
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', **kwargs)
    return done.returncode, done.stdout


def notes_text(path):
    """What readelf says of the marker notes, without file name and addresses."""
    text = run(['readelf', '-nW', path])[1]
    text = text[text.find('stapsdt'):] if 'stapsdt' in text else ''
    return re.sub(r'0x[0-9a-f]+', 'ADDRESS', text)


def notes(path):
    """[{provider, name, location, base, semaphore, args: [str]}] in the file's order"""
    text = run(['readelf', '-nW', path])[1]
    found = []
    for m in re.finditer(r'Provider: (\S+)\s+Name: (\S+)\s+Location: (0x\w+), Base: (0x\w+), '
                         r'Semaphore: (0x\w+)\s+Arguments: ?(.*)', text):
        found.append({'provider': m[1], 'name': m[2], 'location': int(m[3], 16),
                      'base': int(m[4], 16), 'semaphore': int(m[5], 16), 'args': split_args(m[6])})
    return found


def split_args(text):
    """aarch64 and arm write [sp, 12] with a space in it."""
    return re.findall(r'-?\d+f?@(?:\[[^]]*\]|\S)+', text)


def sizes(note):
    return [a.split('@')[0] for a in note['args']]
