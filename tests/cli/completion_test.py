"""What the completions of dtap offer, in bash and fish: the commands, and the options of each as its help has them."""
import os
import re
import shutil
import subprocess

import pytest

import harness

FOLDER = harness.TOP / "share/completions"
ENV = {**os.environ, "PATH": f"{harness.BUILD}:{os.environ['PATH']}"}


def of_bash(*words):
    script = f"source {FOLDER}/dtap; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _dtap dtap; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return set(subprocess.run(["bash", "-c", script, "bash", *words], stdout=subprocess.PIPE, env=ENV, text=True, check=True)
               .stdout.split())


def of_fish(*words):
    script = f"source {FOLDER}/dtap.fish; complete -C '{' '.join(words)}'"
    said = subprocess.run(["fish", "--no-config", "-c", script], stdout=subprocess.PIPE, env=ENV, text=True, check=True).stdout
    return {line.split("\t")[0] for line in said.splitlines()}


def options(command):
    """Those that its help begins lines with."""
    told = subprocess.run([harness.BUILD / "dtap", command, "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {word for line in re.findall(r"^  (?:-., |    )--.*", told, re.M) for word in re.findall(r"(?<!\S)--?[a-z_]+", line[:30])}


def commands():
    told = subprocess.run([harness.BUILD / "dtap", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return set(re.findall(r"^  ([a-z]+) +\S", told, re.M))


SHELLS = [of_bash, pytest.param(of_fish, marks=pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed"))]


@pytest.mark.parametrize("offered", SHELLS)
def test_commands(offered):
    assert offered("dtap", "") >= commands() >= {"top", "dump", "record", "dtrace"}
    assert offered("dtap", "rec") == {"record"}


@pytest.mark.parametrize("offered", SHELLS)
@pytest.mark.parametrize("command", ["record", "slow", "dump", "calls", "gil"])
def test_options(offered, command):
    long = {word for word in options(command) if word.startswith("--")}
    assert long >= {"--pid", "--json"} and offered("dtap", command, "--") == long


def test_processes_and_users():
    assert str(os.getpid()) in of_bash("dtap", "top", "-p", "") and "root" in of_bash("dtap", "top", "-u", "")


@pytest.mark.parametrize("shell, name", [("zsh", "_dtap"), ("fish", "dtap.fish"), ("bash", "dtap")])
def test_they_are_sound(shell, name):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    result = harness.run([shell, "-n", FOLDER / name])
    assert (result.code, result.err) == (0, ""), result
