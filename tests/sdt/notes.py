#!/usr/bin/env python3
"""
Notes of the programs in notes/: the markers and the sizes that each says it wants, for every compiler,
language, optimisation and machine at hand, and the same bytes as SystemTap's header makes.

In a program's first comment:
    want: NAME SIZE...      a marker and its arguments' sizes; c, L and P are char, long and pointer;
                            A|B accepts either.  Inlining may repeat a marker.
    c only | x86_64 only    not as C++; not for other machines
    ours only | theirs in c only
                            SystemTap's header cannot do it; not in C++
"""

import os
import re
import tempfile

from common import HERE, INCLUDE, SYSTEMTAP, Report, have, notes, notes_text, run, sizes, some

WARNINGS = ['-Wall', '-Wextra', '-Wshadow', '-Wconversion', '-Wsign-conversion', '-Wundef', '-Werror',
            '-pedantic', '-Wno-unused-command-line-argument', '-Wno-deprecated-volatile']
BOOL = ['-Dbool=_Bool']
LEVELS = [['-O0'], ['-O2'], ['-O3'], ['-O2', '-fPIC']]

# --target, size of long and pointer, is char signed
MACHINES = [('aarch64-linux-gnu', 8, False), ('i386-linux-gnu', 4, True),
            ('riscv64-linux-gnu', 8, False), ('x86_64-linux-gnu', 8, True)]


def directives(path):
    comment = re.match(r'/\*(.*?)\*/', open(path).read(), re.S)[1]
    want = []
    for line in re.findall(r'want: (.*)', comment):
        name, *args = line.split()
        want.append((name, args))
    return want, {d for d in ('c only', 'ours only', 'theirs in c', 'x86_64 only') if d in comment}


def matches(size, want, word, char_signed):
    names = {'c': '-1' if char_signed else '1','L': str(word), '-L': str(-word), 'P': str(word)}
    return size in [names.get(w, w) for w in want.split('|')]


def check(report, what, path, want, word=8, char_signed=True):
    found = notes(path)
    for name, args in want:
        same = [n for n in found if n['name'] == name]
        report.ok(what + ': ' + name,
                  any(len(args) == len(n['args'])
                      and all(matches(s, w, word, char_signed) for s, w in zip(sizes(n), args))
                      for n in same),
                  'want %s\nfound %s' % (args, [n['args'] for n in same]))
    names = {name for name, args in want}
    report.ok(what + ': nothing else', {n['name'] for n in found} == names,
              '%s' % {n['name'] for n in found})


def compilers(source):
    """(label, command) for each compiler and language that suits the file"""
    if source.endswith('.S'):
        return [(c, [c]) for c in ('gcc', 'clang')]
    found = []
    if not source.endswith('.cc'):
        for cc in ('gcc', 'clang'):
            for std in ('c99', 'gnu11'):
                found.append(('%s %s' % (cc, std), [cc, '-std=' + std, '-x', 'c'] + BOOL))
    if 'c only' not in directives(source)[1] or 'theirs in c' in directives(source)[1]:
        for cc in ('g++', 'clang++'):
            for std in ('c++11', 'gnu++17'):
                found.append(('%s %s' % (cc, std), [cc, '-std=' + std, '-x', 'c++']))
    return found


def main():
    report = Report()
    tmp = tempfile.TemporaryDirectory()
    ours, theirs = tmp.name + '/ours.o', tmp.name + '/theirs.o'
    if not SYSTEMTAP:
        report.skip("comparison: SystemTap's sys/sdt.h is not installed")
    for at, name in enumerate(sorted(os.listdir(HERE + '/notes'))):
        source = HERE + '/notes/' + name
        want, flags = directives(source)
        for turn, (label, command) in enumerate(compilers(source), at):
            if not have(command[0]):
                report.skip(command[0] + ' is not installed')
                continue
            for level in some(LEVELS, turn):
                what = '%s, %s %s' % (name, label, ' '.join(level))
                warnings = [] if name.endswith('.S') else WARNINGS
                status, out = run(command + level + warnings
                                  + ['-I', INCLUDE, '-c', source, '-o', ours])
                if not report.ok(what + ': compiles', status == 0, out):
                    continue
                check(report, what, ours, want)
                cxx = ['-DSYSTEMTAP_CXX'] if '++' in label else []
                if not SYSTEMTAP or 'ours only' in flags or (cxx and 'theirs in c' in flags):
                    continue
                status, out = run(command + level + cxx
                                  + ['-isystem', SYSTEMTAP[0], '-c', source, '-o', theirs])
                if report.ok(what + ": compiles with SystemTap's", status == 0, out):
                    if cxx:
                        run(command + level + cxx + ['-I', INCLUDE, '-c', source, '-o', ours])
                    report.ok(what + ": equals SystemTap's", notes_text(ours) == notes_text(theirs),
                              notes_text(ours) + '\n--- theirs\n' + notes_text(theirs))
        if 'x86_64 only' in flags:
            continue
        for turn, (machine, word, char_signed) in enumerate(MACHINES, at):
            for level in some(LEVELS, turn):
                what = '%s, %s %s' % (name, machine, ' '.join(level))
                if not have('clang'):
                    report.skip('clang is not installed')
                    continue
                language = ['-std=c++11', '-x', 'c++'] if name.endswith('.cc') else ['-std=c99'] + BOOL
                status, out = run(['clang', '-target', machine, '-nostdlibinc', '-ffreestanding']
                                  + language + level + WARNINGS + ['-I', INCLUDE, '-c', source, '-o', ours])
                if report.ok(what + ': compiles', status == 0, out):
                    check(report, what, ours, want, word, char_signed)
    report.finish()


main()
