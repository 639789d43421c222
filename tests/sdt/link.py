#!/usr/bin/env python3
"""
Linked programs: position-independent or not, static, shared, with link-time optimisation.  Each note must
point to a nop, to the base as it is in the file and to the marker's semaphore, and a marker with a semaphore
must cost no more than its nop.
"""

import re
import struct
import tempfile

from common import INCLUDE, Report, have, notes, run

MARKERS = '''
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
extern unsigned short demo_hidden_semaphore
	__attribute__((unused, section(".probes"), visibility("hidden")));
extern unsigned short demo_visible_semaphore __attribute__((unused, section(".probes")));
static int square(int x)
{
	DTRACE_PROBE1(demo, hidden, x);
	return x * x;
}
int quiet(int x)
{
	DTRACE_PROBE1(demo, visible, x);
	return x;
}
int main(int argc, char **argv)
{
	return square(argc) + square(3) + quiet(argc) + (argv == 0);
}
'''
SEMAPHORES = '''
unsigned short demo_hidden_semaphore __attribute__((section(".probes"), visibility("hidden")));
unsigned short demo_visible_semaphore __attribute__((section(".probes")));
'''

LINKS = [[], ['-fPIE', '-pie'], ['-no-pie', '-fno-pie'], ['-static'], ['-fPIC', '-shared'],
         ['-flto'], ['-flto', '-fPIC', '-shared'], ['-flto', '-O3', '-fPIE', '-pie'],
         ['-ffunction-sections', '-Wl,--gc-sections'], ['-mcmodel=large', '-no-pie', '-fno-pie']]
NOPS = (b'\x90', b'\x0f\x1f\x44\x00\x00')


def segments(path):
    """[(address, file offset, size)] of what is loaded"""
    out = run(['readelf', '-lW', path])[1]
    return [(int(m[2], 16), int(m[1], 16), int(m[3], 16)) for m in
            re.finditer(r'LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)', out)]


def read(path, address, size):
    for start, offset, length in segments(path):
        if start <= address < start + length:
            with open(path, 'rb') as f:
                f.seek(offset + address - start)
                return f.read(size)
    return b''


def section_address(path, name):
    m = re.search(r'\] %s\s+\w+\s+(\w+)' % re.escape(name), run(['readelf', '-SW', path])[1])
    return int(m[1], 16) if m else None


def symbols(path):
    out = run(['nm', path])[1]
    return {m[2]: int(m[1], 16) for m in re.finditer(r'^(\w+) \w (\S+)$', out, re.M)}


def check(report, what, path, nop):
    found = notes(path)
    report.ok(what + ': markers', {n['name'] for n in found} == {'hidden', 'visible'}, str(found))
    base = section_address(path, '.stapsdt.base')
    known = symbols(path)
    for note in found:
        here = '%s: %s' % (what, note['name'])
        report.ok(here + ' is at a nop', read(path, note['location'], len(nop)) == nop,
                  '%#x' % note['location'])
        report.ok(here + ' base', note['base'] == base, '%#x, section %s' % (note['base'], base))
        semaphore = known.get('demo_%s_semaphore' % note['name'])
        report.ok(here + ' semaphore', note['semaphore'] == semaphore != 0,
                  '%#x, symbol %s' % (note['semaphore'], semaphore))
        report.ok(here + ' semaphore is 0',
                  struct.unpack('<H', read(path, note['semaphore'], 2) or b'\1\1')[0] == 0)


def main():
    report = Report()
    tmp = tempfile.TemporaryDirectory()
    markers, semaphores, program = (tmp.name + n for n in ('/markers.c', '/semaphores.c', '/program'))
    open(markers, 'w').write(MARKERS)
    open(semaphores, 'w').write(SEMAPHORES)
    for cc in ('gcc', 'clang'):
        if not have(cc):
            report.skip(cc + ' is not installed')
            continue
        for link in LINKS:
            for nop, define in zip(NOPS, ([], ['-DSDT_NO_RED_ZONE', '-mno-red-zone'])):
                what = ' '.join([cc] + link + define)
                status, out = run([cc, '-O2', '-Wall', '-Wno-unused-command-line-argument'] + link + define
                                  + ['-I', INCLUDE, markers, semaphores, '-o', program])
                if report.ok(what + ': builds', status == 0, out):
                    check(report, what, program, nop)
        # Nobody listens: the marker in quiet() is one instruction, wherever the semaphore may be.
        for pic in ([], ['-fPIC']):
            run([cc, '-O2'] + pic + ['-I', INCLUDE, '-c', markers, '-o', program])
            out = run(['objdump', '-d', '--no-show-raw-insn', '--disassemble=quiet', program])[1]
            code = re.findall(r'^\s+\w+:\s+(\S.*?)\s*$', out, re.M)
            allowed = 4 if cc == 'gcc' else 5 + len(pic)  # clang stores x for the tracer, loads an address
            report.ok('%s %s: a marker costs a nop' % (cc, pic),
                      'nop' in code and len([c for c in code if not c.startswith(('nopw', 'cs', 'data16',
                                                                                 'xchg', 'endbr'))]) <= allowed,
                      '\n'.join(code))
    report.finish()


main()
