#!/bin/sh
# Makes the seeds of corpus/elf: small programs with markers, as compiled, as a stripped library with
# .gnu_debugdata, with call frame information, and for 32 bits.  The seeds are committed; run this again when the
# reader learns to read more.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=$here/corpus/elf
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"
small='-Os -w -nostdlib -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none
	-Wl,-z,norelro,-z,noseparate-code,--build-id=none'
cat >seed.c <<'END'
#define main unused_main
#define read(...) 0
#define write(...) 1
#include "marked.c"
#undef main
void _start(void) { marked_first(); marked_second(); }
END
cp "$here/../unit/elf/marked.c" marked.c
sed -i '/#include <unistd.h>/d' marked.c
${CC:-cc} $small -static -o "$out/static" seed.c
${CC:-cc} $small -fPIC -shared -Wl,-soname,seed.so -o full.so seed.c
objcopy --strip-debug full.so mini
xz mini
strip full.so
objcopy --add-section .gnu_debugdata=mini.xz full.so "$out/debugdata"
cat >unwind.c <<'END'
__attribute__((noinline)) int many(int a, int b, int c, int d) { volatile int v[300]; v[a] = b; return v[c] + d; }
__attribute__((noinline)) int calls(int n) { return n ? many(n, 1, 2, 3) + calls(n - 1) * n : 0; }
void _start(void) { calls(3); for (;;) ; }
END
${CC:-cc} -O1 -w -nostdlib -fno-stack-protector -fasynchronous-unwind-tables -static -Wl,-z,norelro,-z,noseparate-code \
	-Wl,--build-id=none,--eh-frame-hdr -o "$out/unwind" unwind.c
strip "$out/unwind"
clang $small -m32 -static -o "$out/static32" seed.c
ls -l "$out"
