#!/usr/bin/env python3
"""
dtrace -h and -G as builds call them: the steps of CPython, PostgreSQL, GLib, QEMU and others on providers of
the same shapes, what comes of it in C and C++, and what a tracer sees.  Usage: provider.py DTAP
"""

import os
import re
import shutil
import sys
import tempfile

from common import HERE, INCLUDE, Report, have, notes, run, sizes
from values import SHIM

DTRACE = [os.path.abspath(sys.argv[1]), 'dtrace']
BASE_ENV = {k: v for k, v in os.environ.items() if k not in ('CC', 'CFLAGS')}


class Build:
    """A folder in which a project is built."""

    def __init__(self, report, name):
        self.report = report
        self.name = name
        self.tmp = tempfile.TemporaryDirectory()
        self.dir = self.tmp.name

    def copy(self, name, to=None):
        shutil.copy(HERE + '/provider/' + name, self.path(to or name))

    def path(self, name):
        return self.dir + '/' + name

    def write(self, name, text):
        with open(self.path(name), 'w') as f:
            f.write(text)

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def run(self, argv, env=None, **kwargs):
        return run(argv, cwd=self.dir, env=dict(BASE_ENV, **(env or {})), **kwargs)

    def ok(self, what, condition, details=''):
        return self.report.ok('%s: %s' % (self.name, what), condition, details)

    def step(self, argv, env=None, want=0, **kwargs):
        """A step of a build: exit status @want and, if that is 0, not a word."""
        status, out = self.run(argv, env, **kwargs)
        return self.ok(' '.join(argv), status == want and (want or not out), '%d\n%s' % (status, out))

    def sed(self, script, name):
        out = self.run(['sed', '-e', script, name])[1]
        self.write(name, out)

    def symbols(self, name):
        return re.findall(r'(\w+_semaphore)$', self.run(['nm', name])[1], re.M)


def cpython(report):
    """configure's question, the Makefile's two steps, a program with the macros that pydtrace.h expects."""
    b = Build(report, 'CPython')
    b.copy('cpython.d', 'pydtrace.d')
    b.copy('cpython.c')
    b.write('conftest.d', 'BEGIN{}\n')
    b.step(DTRACE + ['-G', '-s', 'conftest.d', '-o', 'conftest.o'])
    b.ok('conftest.o is there', os.path.exists(b.path('conftest.o')))
    env = {'CC': 'gcc -pthread', 'CFLAGS': '-O3 -Wall -flto -fno-semantic-interposition'}
    b.step(DTRACE + ['-o', 'pydtrace_probes.h', '-h', '-s', 'pydtrace.d'], env)
    # CPython's sed replaces the first in each line only
    b.sed('s/PYTHON_/PyDTrace_/', 'pydtrace_probes.h')
    b.ok('one macro a line', 'PYTHON_' not in b.read('pydtrace_probes.h'))
    b.step(DTRACE + ['-o', 'pydtrace.o', '-G', '-s', 'pydtrace.d', 'ceval.o', 'import.o'], env)
    for cc, language in (('gcc', []), ('g++', ['-x', 'c++']), ('clang', []), ('gcc', ['-flto', '-O3'])):
        if have(cc):
            b.step([cc, '-O2', '-Wall', '-Wextra', '-Werror', '-pedantic', '-I', INCLUDE] + language
                   + ['cpython.c', '-x', 'none', 'pydtrace.o', '-o', 'cpython'])
            found = notes(b.path('cpython'))
            b.ok(cc + ' notes', {n['name']: sizes(n) for n in found} == {
                'function__entry': ['8', '8', '-4'], 'function__return': ['8', '8', '-4'],
                'line': ['8', '8', '-4'], 'gc__start': ['-4'], 'gc__done': ['-8'],
                'import__find__load__start': ['8'], 'import__find__load__done': ['8', '-4'],
                'audit': ['8', '8']}, str(found))
            b.ok(cc + ' semaphores', all(n['semaphore'] for n in found)
                 and len({n['semaphore'] for n in found}) == 8, str(found))
            b.ok(cc + ' provider', {n['provider'] for n in found} == {'python'})
            b.step(['./cpython'])
    traced_by_dtap(b)
    traced(b, './cpython', {
        'function__entry': ('"%s %s %d", str(arg0), str(arg1), arg2', 'demo.py start 3'),
        'line': ('"%s %s %d", str(arg0), str(arg1), arg2', 'demo.py start 4'),
        'gc__start': ('"%d", arg0', '2'),
        'gc__done': ('"%ld", arg0', '1234567890123'),
        'import__find__load__start': ('"%s", str(arg0)', 'json'),
        'import__find__load__done': ('"%s %d", str(arg0), arg1', 'json 0'),
        'audit': ('"%s %d", str(arg0), arg1', 'open 0'),
        'function__return': ('"%s %s %d", str(arg0), str(arg1), (int32)arg2', 'demo.py start -1'),
    }, 'python')


def traced_by_dtap(b):
    if b.run(DTRACE + ['-n', 'BEGIN { exit(0); }'])[0] != 0:
        b.report.skip('dtap may not trace')
        return
    b.write('demo.d', """
        python$target:::function-entry, python$target:::line, python$target:::function-return
        { printf("%s %s %s %d\\n", probename, copyinstr(arg0), copyinstr(arg1), arg2); }
        python$target:::gc-start, python$target:::gc-done { printf("%s %d\\n", probename, arg0); }
        python$target:::import-find-load-start { printf("%s %s\\n", probename, copyinstr(arg0)); }
        python$target:::import-find-load-done { printf("%s %s %d\\n", probename, copyinstr(arg0), arg1); }
        python$target:::audit { printf("%s %s %d\\n", probename, copyinstr(arg0), arg1); }
        """)
    status, out = b.run(DTRACE + ['-q', '-s', 'demo.d', '-c', './cpython'])
    b.ok('dtap sees all eight', status == 0 and out.split('\n') == [
        'function-entry demo.py start 3', 'line demo.py start 4', 'gc-start 2', 'gc-done 1234567890123',
        'import-find-load-start json', 'import-find-load-done json 0', 'audit open 0',
        'function-return demo.py start -1', '', ''], out)


def traced(b, program, probes, provider):
    """bpftrace raises the semaphores, so markers behind _ENABLED() fire."""
    b.write('shim.c', SHIM)
    b.run(['gcc', '-w', '-shared', '-fPIC', 'shim.c', '-o', 'shim.so'])
    env = {'LD_PRELOAD': b.path('shim.so')}
    if not have('bpftrace') or b.run(['bpftrace', '-e', 'BEGIN { exit(); }'], env)[0] != 0:
        b.report.skip('bpftrace is missing, or may not trace')
        return
    script = ''.join('usdt:%s:%s:%s { printf(%s); }\n' % (
        program, provider, name, show.replace('"', '"%s ' % name, 1).replace('",', '\\n",', 1))
        for name, (show, want) in probes.items())
    out = b.run(['bpftrace', '-e', script, '-c', program], env)[1]
    for name, (show, want) in probes.items():
        # strings on pages that the program has not touched are "" to a tracer in the kernel
        lines = [l for l in out.splitlines() if l.startswith(name + ' ')]
        strip = re.sub(r'\b[a-z][a-z.]*\b', '', want).split()
        b.ok('bpftrace sees %s' % name, len(lines) == 1
             and (lines[0] == '%s %s' % (name, want) or lines[0].split()[1:] == strip),
             '%s\n%s' % (lines, out[-2000:] if not lines else ''))


def postgresql(report):
    """Types by macros, -C for both steps, a global sed on the header."""
    b = Build(report, 'PostgreSQL')
    b.copy('postgresql.d', 'probes.d')
    b.copy('postgresql.c')
    b.step(DTRACE + ['-h', '-s', 'probes.d', '-o', 'probes.h'], want=1)
    b.step(DTRACE + ['-C', '-h', '-s', 'probes.d', '-o', 'probes.h'])
    b.sed('s/POSTGRESQL_/TRACE_POSTGRESQL_/g', 'probes.h')
    b.step(['gcc', '-O2', '-Wall', '-Werror', '-I', INCLUDE, '-c', 'postgresql.c'])
    b.step(DTRACE + ['-C', '-G', '-s', 'probes.d', '-o', 'probes.o', 'postgresql.o'])
    b.step(['gcc', 'postgresql.o', 'probes.o', '-o', 'postgresql'])
    b.step(['./postgresql'])
    found = {n['name']: sizes(n) for n in notes(b.path('postgresql'))}
    b.ok('notes', found == {'transaction__start': ['4'], 'query__plan__start': [],
                            'buffer__read__done': ['-4', '4', '4', '4', '4', '-4', '1', '1'],
                            'sort__done': ['1', '-8'], 'deadlock__found': []}, str(found))


def glib(report):
    """Meson's generators: output named after the input; two providers; used from C++."""
    b = Build(report, 'GLib')
    b.copy('glib.d', 'glib_probes.d')
    b.copy('glib.c')
    b.step(DTRACE + ['-h', '-s', 'glib_probes.d'])
    b.step(DTRACE + ['-G', '-s', 'glib_probes.d'])
    for cc in ('gcc', 'g++', 'clang', 'clang++'):
        if have(cc):
            language = ['-x', 'c++'] if '++' in cc else []
            b.step([cc, '-O2', '-fPIC', '-Wall', '-Werror', '-I', INCLUDE] + language
                   + ['glib.c', '-x', 'none', 'glib_probes.o', '-o', 'glib'])
            b.step(['./glib'])
            b.ok(cc + ' providers', {(n['provider'], n['name']) for n in notes(b.path('glib'))} == {
                ('glib', 'mem__alloc'), ('glib', 'main__context__prepare'), ('gobject', 'object__new')})


def definitions(report):
    """Definitions with the peculiarities of others."""
    b = Build(report, 'definitions')
    good = {
        # libvirt: '#' begins a comment
        'libvirt': ('provider libvirt {\n\t# file: src/util/event_poll.c\n'
                    '\tprobe event_poll_run(int nfds, int timeout);\n #prefix\n'
                    '\tprobe rpc_client_msg_rx(void *client, int len, int proc, int type, int status);\n};\n', 2),
        # Node: the translators are in another file
        'node': ('typedef struct { int dummy; } own_t;\ntypedef struct { int dummy; } seen_t;\n'
                 'provider node { probe net__stream__end(own_t *c, const char *a) :\n\t(seen_t *c, string a); };\n', 1),
        # HotSpot: upper case; Erlang: hundreds of probes, and names of both kinds
        'hotspot': ('provider hotspot_jni {\n  probe AllocObject__entry(void*, void*);\n'
                    '  probe AllocObject__return(void*);\n  probe vm__init__begin();\n};\n', 3),
        'erlang': ('provider erlang {\n' + ''.join('  probe user_trace__n%d(char *p, int n);\n' % n
                                                   for n in range(951)) + '};\n', 951),
        # shapes of text
        'line ends': ('provider p {\r\n  probe a(int);\r\n};\r\n', 1),
        'one line': ('provider p{probe a();probe b(int);};', 2),
        'spread': ('provider\np\n{\nprobe\na\n(\nint\n)\n;\n}\n;', 1),
        'comments': ('/* * / */ provider /**/ p /* { */ { probe a(/* int */); /* probe b(); */ };', 1),
        'empty': ('', 0),
        'no probes': ('provider p { };', 0),
    }
    for name, (text, count) in good.items():
        b.write('p.d', text)
        b.step(DTRACE + ['-h', '-s', 'p.d'])
        b.write('use.c', '#include "p.h"\nint main(void) { return 0; }\n')
        b.ok('%s: probes' % name, b.read('p.h').count('DTRACE_PROBE') == count, b.read('p.h'))
        b.step(['gcc', '-Wall', '-Wextra', '-Werror', '-I', INCLUDE, '-c', 'use.c'])
        b.step(DTRACE + ['-G', '-s', 'p.d'])
        b.ok('%s: semaphores' % name, len(b.symbols('p.o')) == count)


def command_lines(report):
    """What other builds write, and where output goes."""
    b = Build(report, 'command lines')
    b.write('p.d', 'provider p { probe a__b(int); };\n')
    b.write('sub.d', 'provider p { probe a(N *); };\n')
    os.mkdir(b.path('inc'))
    b.write('inc/t.h', '#define T long\n')
    b.write('i.d', '#include <t.h>\nprovider p { probe a(T); };\n')
    good = [
        (['-DSTAP_SDT_V2', '-o', 'p.h', '-h', '-s', 'p.d'], 'p.h'),                  # QEMU
        (['-DSTAP_SDT_V2', '-o', 'p.o', '-G', '-s', 'p.d'], 'p.o'),
        (['-x', 'nolibs', '-h', '-s', 'p.d', '-o', 'p.h'], 'p.h'),                   # libmemcached
        (['-xnolibs', '-G', '-s', 'p.d', '-o', 'p.o', 'none.o'], 'p.o'),             # Node, Ruby
        (['-64', '-fPIC', '-G', '-s', 'p.d', '-o', 'p.o'], 'p.o'),                   # MySQL, Perl
        (['-h', '-C', '-I', 'inc', '-s', 'i.d', '-o', 'p.h'], 'p.h'),                # Ruby, PHP
        (['-C', '-Iinc', '-h', '-s', 'i.d', '-o', 'p.h'], 'p.h'),
        (['-C', '-DN=int', '-h', '-s', 'sub.d', '-o', 'p.h'], 'p.h'),
        (['-C', '-D', 'N=int', '-h', '-s', 'sub.d', '-o', 'p.h'], 'p.h'),
        (['-C', '-DN=x y', '-UN', '-DN=int', '-G', '-s', 'sub.d', '-o', 'p.o'], 'p.o'),
        (['--types', '--no-pyparsing', '-h', '-s', 'p.d', '-o', 'p.h'], 'p.h'),
        (['-sp.d', '-h'], 'p.h'),
        (['-hs', 'p.d', '-op.h'], 'p.h'),
        (['-G', '-s', 'p.d'], 'p.o'),
        (['-G', '-xldpath=ld', '-n', 'BEGIN { exit(0); }'], 'd.out'),
    ]
    for args, output in good:
        b.step(DTRACE + args)
        if b.ok('%s makes %s' % (args, output), os.path.exists(b.path(output))):
            os.unlink(b.path(output))
    for args, status in [(['-h'], 2), (['-h', '-G', '-s', 'p.d'], 2), (['-h', '-s', 'none.d'], 1),
                         (['-h', '-y', '-s', 'p.d'], 2), (['-h', '-s', 'p.d', '-o', 'no/such/p.h'], 1),
                         (['-C', '-h', '-s', 'i.d'], 1), (['-h', '-s'], 2), (['-G', '-s', '-'], 2)]:
        b.step(DTRACE + args, want=status, input='provider p { probe a(); };')
    b.step(DTRACE + ['-G', '-s', 'p.d'], {'CC': 'no-such-compiler'}, want=1)
    b.step(DTRACE + ['-G', '-s', 'p.d'], {'CFLAGS': '--no-such-option'}, want=1)
    b.ok('no object without a compiler', not os.path.exists(b.path('p.o')))
    status, out = b.run(DTRACE + ['-h', '-s', '-'], input='provider p { probe from__stdin(); };')
    b.ok('standard input and output', status == 0 and 'P_FROM_STDIN()' in out, out)
    status, out = b.run(DTRACE + ['-h', '-s', '/dev/stdin', '-o', '/dev/stdout'],
                        input='provider p { probe a(); };')
    b.ok('their names in /dev', status == 0 and 'P_A()' in out, out)
    status, out = b.run(DTRACE + ['-k', '-v', '-G', '-s', 'p.d'], {'CC': "gcc '-DA=\"x y\"'", 'CFLAGS': '-O2 \\\n -g'})
    b.ok('-k keeps the source, -v shows the command', status == 0 and 'p.o.c' in out
         and os.path.exists(b.path('p.o.c')) and '-DA="x y"' in out, out)


def objects(report):
    """The object of -G: semaphores, hidden, of the class asked for, whatever CFLAGS say."""
    b = Build(report, 'objects')
    b.copy('types.d')
    flags = ['', '-flto', '-fsanitize=address', '-O3 -fno-common -Werror -Wall -Wextra -Wmissing-declarations',
             '-std=c99 -pedantic-errors', '-fprofile-arcs -ftest-coverage', '-gsplit-dwarf']
    for cc in ('gcc', 'clang'):
        for cflags in flags if have(cc) else []:
            b.step(DTRACE + ['-G', '-s', 'types.d', '-o', 'types.o'], {'CC': cc, 'CFLAGS': cflags})
            out = b.run(['readelf', '-sW', 'types.o'])[1]
            found = re.findall(r'2 OBJECT +GLOBAL HIDDEN +\d+ every_type_(\w+)_semaphore', out)
            b.ok('%s %s: semaphores' % (cc, cflags), len(found) == 14 and 'dashed__name' in found, out)
            b.ok('%s %s: section' % (cc, cflags), ' .probes ' in b.run(['readelf', '-SW', 'types.o'])[1])
    for option, kind in (('-32', 'ELF32'), ('-64', 'ELF64')):
        if b.run(['gcc', '-m32', '-x', 'c', '-c', '-', '-o', 'probe.o'], input='int x;')[0] != 0:
            report.skip('gcc has no -m32')
            break
        for cflags in ('', '-m32', '-m64'):
            b.step(DTRACE + [option, '-G', '-s', 'types.d', '-o', 'types.o'], {'CC': 'gcc', 'CFLAGS': cflags})
            b.ok('%s after %s' % (option, cflags), kind in b.run(['readelf', '-h', 'types.o'])[1])


def types(report):
    """Every argument type is accepted and shown; the header alone compiles, in both languages, twice."""
    b = Build(report, 'types')
    b.copy('types.d')
    b.step(DTRACE + ['-h', '-s', 'types.d'])
    header = b.read('types.h')
    for line in ('probe names(id_number id, enum colour c, struct point *p, union word *w, struct later *l)',
                 'probe mapped(struct point *p, int fd, char *path) : (view_t *p, char *path, int fd)',
                 'probe pointers(const char *const *argv, int (*callback)(int, const char *), void **slot, '
                 'volatile int *flag)', 'probe void__list()', 'EVERY_TYPE_DASHED_NAME(',
                 'DTRACE_PROBE1(every_type, dashed__name, ', 'EVERY_TYPE__LEADING('):
        b.ok('header has ' + line, line in header, header)
    b.write('use.c', '''
        #include "types.h"
        #include "types.h"
        struct point { int x, y; };
        union word { int i; char c[4]; };
        int main(void)
        {
            struct point p = { 1, 2 };
            EVERY_TYPE_NONE();
            EVERY_TYPE_VOID_LIST();
            EVERY_TYPE_FLOATS(1.5f, 2.5);
            EVERY_TYPE_NAMES(1ul, 5, &p, (union word *)0, (struct later *)0);
            EVERY_TYPE_DASHED_NAME(5);
            if (EVERY_TYPE_MAPPED_ENABLED())
                EVERY_TYPE_MAPPED(&p, 1, "path");
            return 0;
        }
        ''')
    for cc, language in (('gcc', []), ('g++', ['-x', 'c++']), ('clang', []), ('clang++', ['-x', 'c++'])):
        if have(cc):
            b.step([cc, '-O2', '-Wall', '-Wextra', '-Werror', '-I', INCLUDE] + language + ['-c', 'use.c'])
            # without semaphores: nothing to link, and _ENABLED() is 1
            b.step([cc, '-O2', '-I', INCLUDE, '-include', 'sys/sdt.h'] + language + ['use.c', '-o', 'use'])
            b.ok(cc + ' without semaphores', {n['name'] for n in notes(b.path('use'))} == {
                'none', 'void__list', 'floats', 'names', 'dashed__name', 'mapped'}
                and not any(n['semaphore'] for n in notes(b.path('use'))))


def questions(report):
    """_ENABLED() is a place of the marker where nothing fires; -G knows the markers of the objects."""
    b = Build(report, 'questions')
    b.write('p.d', 'provider asked { probe go(); probe two(int, char *, uint8_t); };\n')
    b.write('use.c', r'''
        #include <stdio.h>
        #include "p.h"
        __attribute__((noinline)) static void both(int n)
        {
            if (ASKED_TWO_ENABLED())
                ASKED_TWO(n, "x", 7);
        }
        int main(void)
        {
            printf("%d\n", ASKED_GO_ENABLED());
            both(5);
            return 0;
        }
        ''')
    b.step(DTRACE + ['-h', '-s', 'p.d'])
    for cc, language in (('gcc', []), ('g++', ['-x', 'c++']), ('clang', []), ('clang++', ['-x', 'c++'])):
        if not have(cc):
            continue
        for level in '-O0', '-O2':
            b.step([cc, level, '-Wall', '-Wextra', '-Werror', '-I', INCLUDE] + language + ['-c', 'use.c'])
            b.step(DTRACE + ['-G', '-s', 'p.d', 'use.o'])
            b.step([cc, 'use.o', 'p.o', '-o', 'use'])
            found = sorted((n['name'], len(n['args'])) for n in notes(b.path('use')))
            b.ok('%s %s: places of questions' % (cc, level), found == [('go', 0), ('two', 3), ('two', 3)]
                 and all(n['semaphore'] for n in notes(b.path('use'))), str(found))
            out = b.run(['./use'])
            b.ok('%s %s: not asked for' % (cc, level), out == (0, '0\n'), str(out))
    for name, want in (('gone', 1), ('go', 0)):
        b.write('bad.c', '#include <sys/sdt.h>\n'
                'int main(void) { DTRACE_PROBE(asked, %s); DTRACE_PROBE(other, any); return 0; }\n' % name)
        b.step(['gcc', '-I', INCLUDE, '-c', 'bad.c'])
        b.step(DTRACE + ['-G', '-s', 'p.d', '-o', 'made.o', 'bad.o', 'no-such.o'], want=want)
        b.ok('-G with a marker %s' % name, os.path.exists(b.path('made.o')) == (not want))


def main():
    report = Report()
    for case in (cpython, postgresql, glib, definitions, command_lines, objects, types, questions):
        case(report)
    report.finish()


if __name__ == '__main__':
    main()
