"""unend.py FILE OUT: the 64-bit ELF file with the last NUL of its debug information's strings overwritten."""
import struct
import sys

data = bytearray(open(sys.argv[1], "rb").read())
shoff, = struct.unpack_from("<Q", data, 0x28)
entsize, count, names = struct.unpack_from("<3H", data, 0x3a)
sections = [struct.unpack_from("<2I4Q", data, shoff + i * entsize) for i in range(count)]
done = 0
for name, _, _, _, offset, size in sections:
    at = sections[names][4] + name
    if data[at:data.index(0, at)] in (b".debug_str", b".debug_line_str", b".debug_info") and size:
        data[offset + size - 1] = ord("x")
        done += 1
assert done
open(sys.argv[2], "wb").write(data)
