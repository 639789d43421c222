"""BEGIN { exit(0); } from start to exit, and the tracer's peak memory

The goals: at most 15 ms, at most 16 MB.
"""
import harness
import measure
import peer

ROUNDS = 11


def run():
    dtap, theirs = [], []
    for _ in range(ROUNDS):
        dtap.append(measure.wall_and_memory([str(harness.DTRACE), "-q", "-n", "BEGIN { exit(0); }"]))
        theirs.append(measure.wall_and_memory(peer.argv("BEGIN { exit(); }"), peer.environment()))
    for unit, column in (("ms", 0), ("MB", 1)):
        ours = [values[column] for values in dtap]
        peers = [values[column] for values in theirs]
        measure.row("dtap", ours, unit)
        measure.row(peer.VERSION, peers, unit)
        measure.ratio(ours, peers)
