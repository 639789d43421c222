"""each ready-made command, on a service that does something: how much more CPU time a request takes, and how much more a call

The service parses JSON, asks sqlite3, makes objects, raises, writes a file: some 60 calls of Python functions in each request, of a
fifth of a millisecond.  It works a while before it is measured, so that what is slow at the first time alone does not count.  In
turns with the same program untraced; what is shown is the least of all rounds beside the least untraced one, since whatever else the
machine does only adds, and behind it the medians.  A command for functions gets `handle`, which each
request calls once.  The last column is what a service of 20,000 calls a second loses of a processor.
"""
import statistics
import subprocess
import tempfile

import harness
import measure

ROUNDS = 7
REQUESTS = 3000
GROUP = 4           # commands, of which each round runs the untraced program but once

PROGRAM = """
import asyncio, gc, json, os, sqlite3, sys, threading, time
db = sqlite3.connect(":memory:")
db.execute("create table items (name text, price int)")
db.executemany("insert into items values (?, ?)", [(f"item{n}", n) for n in range(50)])
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
lock = threading.Lock()
body = json.dumps({"customer": "carol", "items": [f"item{n}" for n in range(10)]})

class Item:
    def __init__(self, name, price):
        self.name, self.price = name, price
    def cost(self, count):
        return tax(self.price * count)
    def label(self):
        return self.name.title() + ":" + str(self.price)

def tax(price):
    return price + price * 19 // 100
def price_of(name):
    found = db.execute("select price from items where name = ?", (name,)).fetchone()
    if found is None:
        raise LookupError(name)
    return found[0]
def parse(text):
    return json.loads(text)
def make(names):
    return [Item(name, price_of(name)) for name in names]
def render(items):
    return json.dumps([{"label": item.label(), "cost": item.cost(2)} for item in items])
def missing():
    try:
        price_of("nothing")
    except LookupError as error:
        return str(error)
def handle(text):
    order = parse(text)
    answer = render(make(order["items"]))
    missing()
    with lock:
        os.write(log, b"x" * 100)
    return answer

def serve(requests):
    for _ in range(requests):
        handle(body)

def calls_of(requests):
    n = 0
    def count(frame, event, arg):
        nonlocal n
        n += event == "call"
    sys.setprofile(count)
    serve(requests)
    sys.setprofile(None)
    return n

number = int(sys.argv[1])
if not number:
    print("calls", calls_of(100) / 100)
    sys.exit()
serve(300)
begin = time.process_time()
serve(number)
print("took", time.process_time() - begin, flush=True)
"""

COMMANDS = ["calls", "top", "time", "record", "record --cpu", "record --sample 97", "sample", "flow", "flow handle", "trace handle",
            "slow handle", "slow --waits handle", "waits handle", "exceptions", "audit", "gc", "imports", "tasks", "lines handle",
            "memory", "memory --least 4096", "io", "lock", "gil"]


def command_of(words, folder, traced):
    name, *options = words.split()
    functions = [word for word in options if word == "handle"]
    options = [word for word in options if word != "handle"]
    return [str(harness.BUILD / "dtap"), name, *options, "-o", f"{folder}/out.jsonl", "-c", traced, *functions]


def number(text, word):
    return float(text.split(f"{word} ")[1].split()[0])


def took(argv):
    run = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{' '.join(argv)}:\n{run.stderr}")
    return number(run.stdout, "took")


def ask(interp, folder):
    bare_argv = interp.argv_of(PROGRAM, REQUESTS, f"{interp.inside(interp.dir)}/log")
    calls = number(subprocess.run(interp.argv_of(PROGRAM, 0, f"{interp.inside(interp.dir)}/log"), stdout=subprocess.PIPE, text=True, check=True).stdout,
                   "calls")
    traced = interp.command(PROGRAM, REQUESTS, f"{interp.inside(interp.dir)}/log")
    times, bares = {c: [] for c in COMMANDS}, []
    for _ in range(ROUNDS):
        for k, c in enumerate(COMMANDS):
            if k % GROUP == 0:
                bares.append(took(bare_argv))
            times[c].append(took(command_of(c, folder, traced)))
    bare = min(bares)
    print(f"    a request untraced: {bare / REQUESTS * 1e6:.0f} us, {calls:.0f} calls")
    for c in COMMANDS:
        least, middle = min(times[c]), statistics.median(times[c])
        ns = (least - bare) / REQUESTS / calls * 1e9
        print(f"    {c:<20} {least / bare:6.2f} times ({middle / statistics.median(bares):.2f})  {ns:8.0f} ns a call  "
              f"{ns * 20_000 / 1e7:6.2f} %", flush=True)


def run():
    for version in harness.VERSIONS:
        interp = measure.interpreter(version)
        print(f"  Python {version}", flush=True)
        with tempfile.TemporaryDirectory(prefix="dtap-bench-") as folder:
            ask(interp, folder)
        interp.close()
