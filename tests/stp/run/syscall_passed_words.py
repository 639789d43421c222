import os

for call, name in (os.mkdir, "/tmp"), (os.rmdir, "/none"):
    try:
        call(name, *[0o700] * (call is os.mkdir))
    except OSError:
        pass
