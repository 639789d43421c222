"""
An argument that a marker does not have: an error where it is asked for by name, 0 where D's argN stands for any, and a
fault, the same in both places, where that 0 is followed.
"""
import re

import pytest

import harness

# name -> how many arguments, as the agent's own table has them
MARKERS = {name.replace("__", "-"): int(n) for name, n in
           re.findall(r"^ABI_MARKER\((\w+),\s+(\d)", (harness.TOP / "src/abi/marker.def").read_text(), re.MULTILINE)}

PROGRAM = """
import gc, os, threading
def probe():
    try:
        len(())
        raise ValueError
    except ValueError:
        pass
probe()
gc.collect()
import colorsys
threading.Thread(target=probe).start()
import asyncio
async def turns():
    await asyncio.sleep(0)
asyncio.run(turns())
os.write(1, b"\\nresult 7\\n")
"""
PLACES = ["target", "kernel"]


def can(place):
    if place == "kernel" and harness.bpf_refusal():
        pytest.skip(harness.bpf_refusal())


def test_markers():
    assert MARKERS["function-entry"] == 3 and MARKERS["gc-start"] == 1 and len(MARKERS) >= 12


@pytest.mark.needs_root
@pytest.mark.interps("3.9", "3.13")
@pytest.mark.parametrize("place", PLACES)
def test_followed(dtrace, interp, place):
    """Every argument from the first missing one on, of every marker's first events: the target goes on."""
    can(place)
    missing = [(name, f"seen_{name.replace('-', '_')}", n) for name, has in MARKERS.items() for n in range(has, 10)]
    # Of the first ones alone: no buffer has room for the errors of all, and what is dropped may be the only one of its marker.
    script = "".join(f"python$target:::{name} {{ {seen}++; }}\n" for name, seen in dict.fromkeys(row[:2] for row in missing))
    script += "".join(f"python$target:::{name} /{seen} <= 10/ {{ trace(copyinstr(arg{n})); }}\n"
                      f'python$target:::{name} /{seen} <= 10/ {{ printf("=%d=", arg{n}); }}\n' for name, seen, n in missing)
    result = dtrace("-x", f"place={place}", "-x", "agent=always", "-n", script, "-c", interp.command(PROGRAM), timeout=120)
    assert result.code == 0 and "\nresult 7\n" in result.out, result
    assert set(re.findall(r"=(-?\d+)=", result.out)) == {"0"}, result
    faults = re.findall(r"error in dt_clause_\d+ for probe ID \d+ \(.*:([\w-]+)\): (.*?) at BPF", result.err)
    assert {name for name, _ in faults} == set(MARKERS), result
    assert {what for _, what in faults} == {"invalid address (0x0)"} and "drop" not in result.err, result


@pytest.mark.needs_root
@pytest.mark.interps("3.13")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", MARKERS)
def test_named(interp, name, place):
    """Of args[N] and $argN the last that there is will do, the next is refused where it stands."""
    can(place)
    has = MARKERS[name]
    for n in (has - 1, has):
        script = f"python$target:::{name} {{ trace(args[{n}]); }}"
        result = harness.dtrace("-e", "-xerrtags", "-x", f"place={place}", "-x", "agent=always", "-n", script,
                                "-c", interp.command("pass"))
        tag = f"[D_ARGS_IDX] " in result.err and f"index {n} is out of range" in result.err
        assert (result.code, tag) == ((0, False) if n < has else (1, True)), result
        script = f'probe process("{interp.executable}").mark("{name.replace("-", "__")}") {{ println($arg{n + 1}) }}'
        result = harness.stap("-p4", f"--place={place}", "-e", script, "-c", interp.command("pass"))
        told = f"'$arg{n + 1}' at <input>:1:{script.index('$arg') + 1}" in result.err
        assert (result.code, told) == ((0, False) if n < has else (1, True)), result
