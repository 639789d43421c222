#!/usr/bin/env python3
"""
Malformed provider definitions: each must be refused with exit code 1, a message that names the file and the
guilty line, and no output file.  Usage: malformed.py DTAP
"""

import os
import re
import sys
import tempfile

from common import Report, run

# (line where it is noticed, definition)
MALFORMED = [
    # the provider
    (1, 'provider {\n probe a();\n};'),
    (1, 'provider 5 { probe a(); };'),
    (1, 'provider p1 { probe a(); };'),
    (1, 'provider "p" { probe a(); };'),
    (1, 'provider p q { probe a(); };'),
    (1, 'provider p; { probe a(); };'),
    (1, 'provider p ( probe a(); );'),
    (2, 'provider p { probe a(); }'),
    (4, 'provider p {\n probe a();\n'),
    (2, 'provider p { probe a(); };\nprovider p { probe b(); };'),
    (1, 'provider %s { probe a(); };' % ('p' * 64)),
    (1, 'provider p.q { probe a(); };'),
    (1, 'provider int { probe a(); };'),
    (2, 'provider p { probe a(); };\n};'),
    (1, 'providers p { probe a(); };'),
    (2, 'provider p {\n provider q { probe a(); };\n};'),
    # the probe
    (2, 'provider p {\n prob a();\n};'),
    (2, 'provider p {\n probe ();\n};'),
    (2, 'provider p {\n probe 7up();\n};'),
    (3, 'provider p {\n probe a()\n probe b();\n};'),
    (2, 'provider p {\n probe a;\n};'),
    (2, 'provider p {\n probe a(;\n};'),
    (2, 'provider p {\n probe a);\n};'),
    (2, 'provider p {\n probe a(int;\n};'),
    (2, 'provider p {\n probe a() b();\n};'),
    (2, 'provider p {\n int a();\n};'),
    (3, 'provider p {\n probe a();\n probe a(int);\n};'),
    (3, 'provider p {\n probe a__b();\n probe a_b();\n};'),
    (3, 'provider p {\n probe a();\n probe a__enabled();\n};'),
    (2, 'provider p {\n probe %s();\n};' % ('a' * 64)),
    (2, 'provider p {\n probe a.b();\n};'),
    (2, 'provider p {\n probe a-();x\n};'),
    (2, 'provider p {\n probe struct(int);\n};'),
    # arguments
    (2, 'provider p {\n probe a(int,);\n};'),
    (2, 'provider p {\n probe a(,int);\n};'),
    (2, 'provider p {\n probe a(int int);\n};'),
    (2, 'provider p {\n probe a(int b, int b);\n};'),
    (2, 'provider p {\n probe a(void, int);\n};'),
    (2, 'provider p {\n probe a(void b);\n};'),
    (2, 'provider p {\n probe a(int, ...);\n};'),
    (2, 'provider p {\n probe a(...);\n};'),
    (2, 'provider p {\n probe a(%s);\n};' % ', '.join(['int'] * 13)),
    (2, 'provider p {\n probe a(unsigned float);\n};'),
    (2, 'provider p {\n probe a(short long);\n};'),
    (2, 'provider p {\n probe a(signed unsigned);\n};'),
    (2, 'provider p {\n probe a(long long long);\n};'),
    (2, 'provider p {\n probe a(int *[);\n};'),
    (2, 'provider p {\n probe a(int b[-1]);\n};'),
    (2, 'provider p {\n probe a(int (*f);\n};'),
    (2, 'provider p {\n probe a(3);\n};'),
    (2, 'provider p {\n probe a("text");\n};'),
    (2, 'provider p {\n probe a(@x);\n};'),
    (2, 'provider p {\n probe a(enum {});\n};'),
    (2, 'provider p {\n probe a(int b = 1);\n};'),
    # output arguments
    (2, 'provider p {\n probe a(int b) : ;\n};'),
    (2, 'provider p {\n probe a(int b) : (int b;\n};'),
    (2, 'provider p {\n probe a(int b) (int b);\n};'),
    (2, 'provider p {\n probe a() : (int b);\n};'),
    (2, 'provider p {\n probe a(int b) : (int b, int c);\n};'),
    (3, 'struct s { int x; };\nprovider p {\n probe a(int b) : (struct s b);\n};'),
    # types beside the provider
    (2, 'struct s { int x;\nprovider p { probe a(); };'),
    (2, 'typedef int t\nprovider p { probe a(t); };'),
    (2, 'typedef int t;\ntypedef long t;\nprovider p { probe a(t); };'),
    (2, 'struct s { int x; };\nstruct s { int y; };\nprovider p { probe a(struct s *); };'),
    # pragmas
    (1, '#pragma D attributes Evolving/Evolving/Common provider q args\nprovider p { probe a(); };'),
    (1, '#pragma D attributes Evolving/Common provider p args\nprovider p { probe a(); };'),
    (1, '#pragma D attributes Nice/Evolving/Common provider p args\nprovider p { probe a(); };'),
    (1, '#pragma D attributes Evolving/Evolving/Common provider p arguments\nprovider p { probe a(); };'),
    (1, '#pragma D attributes Evolving/Evolving/Common provider p\nprovider p { probe a(); };'),
    (1, '#pragma D attributes\nprovider p { probe a(); };'),
    (1, '#define t int\nprovider p { probe a(t); };'),
    # text
    (1, '/* provider p { probe a(); };'),
    (2, 'provider p {\n probe a(int); /* no end\n};'),
    (2, 'provider p {\n probe a(int) \x01;\n};'),
    (2, 'provider p {\n probe a(int) $;\n};'),
    (2, 'provider p {\n probe \xfcber(int);\n};'),
]


def main():
    dtap = os.path.abspath(sys.argv[1])
    report = Report()
    tmp = tempfile.TemporaryDirectory()
    script, header = tmp.name + '/bad.d', tmp.name + '/bad.h'
    for number, (line, text) in enumerate(MALFORMED):
        with open(script, 'wb') as f:
            f.write(text.encode('latin-1') + b'\n')
        status, out = run([dtap, 'dtrace', '-h', '-s', script, '-o', header])
        first = re.search(r'bad\.d: line (\d+): column (\d+): \S', out)
        what = '%d: %s' % (number, text)
        report.ok(what + '\nis refused', status == 1, 'exit code %d\n%s' % (status, out))
        report.ok(what + '\nis located', first is not None and int(first[1]) == line,
                  'wanted line %d\n%s' % (line, out))
        report.ok(what + '\nmakes no header', not os.path.exists(header))
        report.ok(what + '\nnames no other tool', 'Error' not in out and 'sanitizer' not in out.lower(), out)
        if os.path.exists(header):
            os.unlink(header)
    report.ok('there are 60 of them', len(MALFORMED) >= 60)
    report.finish()


main()
