#!/usr/bin/env python3
"""
Values through markers: a program fires every scalar type with its extreme values, twelve arguments at a time,
and tracers must print what the program passed.  gdb needs no privilege; dtap and bpftrace need root and BPF.
Usage: values.py [DTAP]
"""

import os
import re
import sys
import tempfile

from common import INCLUDE, Report, have, run, some

PROGRAM = r'''
#include <limits.h>
#include <sys/sdt.h>

#ifdef __cplusplus
#define _Bool bool
#endif

enum negative { LOWEST = INT_MIN, HIGHEST = INT_MAX };

struct flags {
	int a : 3;
	unsigned int b : 7;
	long long c : 40;
	unsigned long long d : 40;
	_Bool e : 1;
	signed char f : 5;
	enum negative g : 32;
};

struct seen { int first; char text[12]; };

__attribute__((noinline)) static void least(signed char sc, unsigned char uc, short s, unsigned short us,
	int i, unsigned int u, long l, unsigned long ul, long long ll, unsigned long long ull, _Bool b,
	enum negative e)
{
	DTRACE_PROBE12(values, least, sc, uc, s, us, i, u, l, ul, ll, ull, b, e);
}

__attribute__((noinline)) static void most(signed char sc, unsigned char uc, short s, unsigned short us,
	int i, unsigned int u, long l, unsigned long ul, long long ll, unsigned long long ull, _Bool b,
	enum negative e)
{
	DTRACE_PROBE12(values, most, sc, uc, s, us, i, u, l, ul, ll, ull, b, e);
}

/* Arguments in the other order are in other places: registers become stack and the reverse. */
__attribute__((noinline)) static void reversed(enum negative e, _Bool b, unsigned long long ull, long long ll,
	unsigned long ul, long l, unsigned int u, int i, unsigned short us, short s, unsigned char uc,
	signed char sc)
{
	DTRACE_PROBE12(values, reversed, e, b, ull, ll, ul, l, u, i, us, s, uc, sc);
}

__attribute__((noinline)) static void fields(const struct flags *f)
{
	DTRACE_PROBE7(values, fields, f->a, f->b, f->c, f->d, f->e, f->f, f->g);
}

__attribute__((noinline)) static void pointers(int n, const char *text)
{
	struct seen seen = { n, "only traced" };
	char *no = 0;

	if (!*(const volatile char *)text)	/* a tracer in the kernel cannot fetch a page that nobody has touched */
		return;
	DTRACE_PROBE4(values, pointers, text, &seen, seen.text, no);
}

int main(int argc, char **argv)
{
	struct flags low = { -4, 0, -549755813888ll, 0, 0, -16, LOWEST };
	struct flags high = { 3, 127, 549755813887ll, 1099511627775ull, 1, 15, HIGHEST };

	int once = 0;

	(void)argv;
	DTRACE_PROBE1(values, once, once++);
	least(SCHAR_MIN, 0, SHRT_MIN, 0, INT_MIN, 0, LONG_MIN, 0, LLONG_MIN, 0, 0, LOWEST);
	most(SCHAR_MAX, UCHAR_MAX, SHRT_MAX, USHRT_MAX, INT_MAX, UINT_MAX, LONG_MAX, ULONG_MAX,
	     LLONG_MAX, ULLONG_MAX, argc == 1, HIGHEST);
	reversed(LOWEST, 1, ULLONG_MAX, LLONG_MIN, ULONG_MAX, LONG_MIN, UINT_MAX, INT_MIN, USHRT_MAX,
		 SHRT_MIN, UCHAR_MAX, SCHAR_MIN);
	fields(&low);
	fields(&high);
	pointers(argc + 41, "text");
	DTRACE_PROBE12(values, constants, (signed char)-1, (unsigned char)255, (short)-2, (unsigned short)65535,
		       -3, 4294967295u, -4L, 5ul, LLONG_MAX, ULLONG_MAX, 'c' + 0, (_Bool)1);
	return once != 1;
}
'''

I = 2 ** 31
Q = 2 ** 63
WANT = {
    'least': [[-128, 0, -32768, 0, -I, 0, -Q, 0, -Q, 0, 0, -I]],
    'most': [[127, 255, 32767, 65535, I - 1, 2 * I - 1, Q - 1, 2 * Q - 1, Q - 1, 2 * Q - 1, 1, I - 1]],
    'reversed': [[-I, 1, 2 * Q - 1, -Q, 2 * Q - 1, -Q, 2 * I - 1, -I, 65535, -32768, 255, -128]],
    'fields': [[-4, 0, -2 ** 39, 0, 0, -16, -I], [3, 127, 2 ** 39 - 1, 2 ** 40 - 1, 1, 15, I - 1]],
    'constants': [[-1, 255, -2, 65535, -3, 2 * I - 1, -4, 5, Q - 1, 2 * Q - 1, 99, 1]],
}
LEVELS = [['-O0'], ['-O2'], ['-O3', '-fPIE', '-pie']]
BUILDS = [[cc] + level for turn, cc in enumerate(('gcc', 'clang', 'g++', 'clang++')) for level in some(LEVELS, turn)]

BPFTRACE_ARGS = 6  # 0.17 refuses arg6 and up; "reversed" shows the others
# bpftrace 0.17 insists on raising its memory limit, which a container may refuse and new kernels ignore.
SHIM = '''
#include <sys/resource.h>
int setrlimit(__rlimit_resource_t what, const struct rlimit *to) { return 0; }
'''


def same(printed, wanted):
    """Tracers differ in how they print what has the top bit set: compare as 64 bits."""
    return len(printed) == len(wanted) and all((p - w) % 2 ** 64 == 0 for p, w in zip(printed, wanted))


def gdb_values(program, name):
    if name == 'pointers':
        show = ('"text %s %d %s %ld\\n", (char *)$_probe_arg0, *(int *)$_probe_arg1, '
                '(char *)$_probe_arg2, (long)$_probe_arg3')
    else:
        args = range(len(WANT[name][0]))
        show = '"%s %s\\n", %s' % (name, ' '.join(['%ld'] * len(args)),
                                  ', '.join('(long)$_probe_arg%d' % i for i in args))
    path = program + '.gdb'
    open(path, 'w').write('set pagination off\nset confirm off\nset disable-randomization on\n'
                          'break -probe-stap values:%s\ncommands\nsilent\nprintf %s\ncontinue\nend\n'
                          'run\n' % (name, show))
    return run(['gdb', '-nx', '-q', '-batch', '-x', path, program])[1]


def bpftrace_values(program, shim):
    script = ''
    for name, lists in WANT.items():
        args = range(min(len(lists[0]), BPFTRACE_ARGS))
        script += 'usdt:%s:values:%s { printf("%s %s\\n", %s); }\n' % (
            program, name, name, ' '.join(['%ld'] * len(args)), ', '.join('arg%d' % i for i in args))
    script += ('usdt:%s:values:pointers { printf("text %%s %%d %%s %%ld\\n", str(arg0), '
               '*(int32 *)arg1, str(arg2), arg3); }\n' % program)
    return run(['bpftrace', '-e', script, '-c', program], env=dict(os.environ, LD_PRELOAD=shim))[1]


def dtap_values(dtap, program):
    script = ''
    for name, lists in WANT.items():
        args = range(len(lists[0]))
        script += 'values$target:::%s { printf("%s %s\\n", %s); }\n' % (
            name, name, ' '.join(['%d'] * len(args)), ', '.join('args[%d]' % i for i in args))
    script += ('values$target:::pointers { printf("text %s %d %s %d\\n", copyinstr(arg0), '
               '*(int *)copyin(arg1, sizeof (int)), copyinstr(arg2), args[3]); }\n')
    return run([dtap, 'dtrace', '-q', '-n', script, '-c', program])[1]


def check(report, what, out, name, nargs=12):
    """Has the tracer printed what marker @name fired?"""
    if name == 'pointers':
        report.ok('%s: pointers' % what, 'text text 42 only traced 0' in out, out[-1500:])
        return
    lists = [values[:nargs] for values in WANT[name]]
    got = [[int(v) for v in m.split()] for m in re.findall(r'^%s ((?:-?\d+ ?)+)$' % name, out, re.M)]
    report.ok('%s: %s' % (what, name),
              len(got) == len(lists) and all(same(g, w) for g, w in zip(got, lists)),
              'want %s\ngot  %s\n%s' % (lists, got, '' if got else out[-1500:]))


def main():
    dtap = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else None
    report = Report()
    tmp = tempfile.TemporaryDirectory()
    source, program, shim = tmp.name + '/values.c', tmp.name + '/values', tmp.name + '/shim.so'
    open(source, 'w').write(PROGRAM)
    open(tmp.name + '/shim.c', 'w').write(SHIM)
    run(['gcc', '-w', '-shared', '-fPIC', tmp.name + '/shim.c', '-o', shim])
    bpftrace = have('bpftrace') and run(['bpftrace', '-e', 'BEGIN { exit(); }'],
                                        env=dict(os.environ, LD_PRELOAD=shim))[0] == 0
    if dtap and run([dtap, 'dtrace', '-n', 'BEGIN { exit(0); }'])[0] != 0:
        report.skip('dtap may not trace')
        dtap = None
    for build in BUILDS:
        if not have(build[0]):
            report.skip(build[0] + ' is not installed')
            continue
        what = ' '.join(build)
        language = ['-x', 'c++'] if '++' in build[0] else ['-x', 'c']
        status, out = run(build + language + ['-Wall', '-Wno-unused-command-line-argument',
                                              '-I', INCLUDE, source, '-o', program])
        if not report.ok(what + ': builds', status == 0, out):
            continue
        report.ok(what + ': runs untraced', run([program])[0] == 0)
        names = list(WANT) + ['pointers']
        if not have('gdb'):
            report.skip('gdb is not installed')
        for name in names if have('gdb') else []:
            out = gdb_values(program, name)
            # gdb 13 knows %r8b by the name r8l alone; GCC writes r8b, under SystemTap's header as well.
            if 'Invalid register name' in out:
                report.skip('%s: gdb cannot read a byte register of %s' % (what, name))
            else:
                check(report, what + ', gdb', out, name)
        if dtap:
            out = dtap_values(dtap, program)
            for name in names:
                check(report, what + ', dtap', out, name)
        if bpftrace:
            out = bpftrace_values(program, shim)
            for name in names:
                check(report, what + ', bpftrace', out, name, BPFTRACE_ARGS)
        else:
            report.skip('bpftrace is missing, or may not trace')
    report.finish()


if __name__ == '__main__':
    main()
