import sys


def numbers(limit):
    for number in range(limit):
        yield number


def consume():
    for number in numbers(2):
        pass


if sys.argv[1:] == ["profile"]:
    depth = 0

    def profile(frame, event, arg):
        global depth
        name = frame.f_code.co_name
        if event not in ("call", "return") or name not in ("numbers", "consume"):
            return
        depth -= event == "return"
        print("%*s%s %s:%d" % (2 * depth, "", "<>"[event == "call"], name, frame.f_lineno))
        depth += event == "call"

    sys.setprofile(profile)
consume()
sys.setprofile(None)
