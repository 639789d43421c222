import os
import struct
import sys

d, f, more = 3.25, struct.unpack("f", struct.pack("f", -0.1))[0], (1e10, 6.02e23, float("inf"))
os.write(os.open("/dev/null", os.O_WRONLY), struct.pack("d4f", d, f, *more))
if sys.argv[1:] == ["print"]:
    print("%f %.3f %10.2e|%-10.1f|%g %G" % (d, f, more[0], d, more[1], more[2]))
    print("%+f % .1f %012.4f %#g %E" % (d, d, f, d, f))
    print("%g %g %g\nfloat %+.7e" % (d, more[2], d, f))
