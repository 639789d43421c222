"""A traced program that goes on for as long as it is asked to, and says of itself that it is well."""
import gc
import json
import select
import sys


def probe(n):
    return n + 1


def hooks():
    """What is hooked into this interpreter."""
    found = [name for name in ("getprofile", "gettrace") if getattr(sys, name)()]
    monitoring = getattr(sys, "monitoring", None)
    for tool in range(6) if monitoring else ():
        if monitoring.get_tool(tool) and monitoring.get_events(tool):
            found.append(monitoring.get_tool(tool))
    return found + [str(callback) for callback in gc.callbacks]


def main():
    total = calls = 0
    while True:
        while not select.select([0], [], [], 0.0005)[0]:
            total += probe(calls) - calls
            calls += 1
        if not sys.stdin.readline():
            break
        print(json.dumps({"right": total == calls, "calls": calls, "hooks": hooks()}), flush=True)


main()
