"""The manual page and the completion know what dtrace --help knows, neither less nor more."""
import re
import shutil
import subprocess

import pytest

import harness

PAGE = harness.TOP / "doc" / "man" / "dtrace.1"
STAP_PAGE = PAGE.with_name("stap.1")
COMPLETION = harness.TOP / "share" / "completions" / "dtrace"

# Understood beside -G alone, so that the help does not show it.
OF_G = {"-k"}


@pytest.fixture(scope="module")
def help_text():
    return harness.dtrace("--help").out


def letters(help_text):
    return set(re.findall(r"^  (-[A-Za-z]) ", help_text, re.M))


def names(help_text):
    table = help_text.partition("Options of -x")[2].partition("Exit codes")[0]
    return set(re.findall(r"^  ([a-z]\w*) ", table, re.M))


def test_letters_in_the_manual(help_text):
    items = [line for line in PAGE.read_text().splitlines() if line.startswith(".It Fl ")]
    found = {f"-{letter}" for line in items for letter in re.findall(r"Fl ([A-Za-z])\b", line)}
    assert found == letters(help_text) | OF_G


def test_letters_in_the_synopsis(help_text):
    """Of the manual and of the line that a wrong command line gets."""
    synopsis = PAGE.read_text().partition(".Sh SYNOPSIS")[2].partition("\n.Nm\n.Fl h")[0]
    usage = harness.dtrace("--nosuch").err
    for found in re.findall(r"^\.Op Fl (\w+)", synopsis, re.M), re.findall(r"\[-([A-Za-z]+)", usage):
        assert {f"-{letter}" for letter in "".join(found)} | {"-h", "-G"} == letters(help_text) | {"-h", "-G"}


def test_names_in_the_manual(help_text):
    items = [line for line in PAGE.read_text().splitlines() if line.startswith(".It Cm ")]
    found = {name for line in items for name in re.findall(r"(?:Cm|,) ([a-z]+)\b", line)}
    assert found == names(help_text)


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("page", sorted(PAGE.parent.glob("*.1")), ids=lambda page: page.stem)
def test_manual_is_sound(page):
    result = harness.run(["groff", "-mdoc", "-Tutf8", "-ww", "-z", page])
    assert (result.code, result.err) == (0, "")


def stap_options():
    return set(re.findall(r"(?<![\w-])--?[A-Za-z][a-z-]*", "\n".join(
        line[:28] for line in harness.stap("--help").out.splitlines() if line.startswith("  -"))))


def test_options_of_stap_in_the_manual():
    items = [line for line in STAP_PAGE.read_text().splitlines() if line.startswith(".It Fl ")]
    found = {f"-{name}" for line in items for name in re.findall(r"Fl (-?[A-Za-z][a-z-]*)", line)}
    assert found == stap_options()


def test_completion_of_stap():
    page = harness.TOP / "share" / "completions" / "stap"
    assert complete("-", page=page, command="stap") == stap_options()
    assert "python.function.entry" in complete("-l", "python.f", page=page, command="stap")


def complete(*words, page=COMPLETION, command="dtrace"):
    """What the completion offers for the last of @words."""
    script = f'source {page}; compopt() {{ :; }}; COMP_WORDS=("${{@}}"); COMP_CWORD=$(($# - 1))\n' \
             f'_{command} "$1"; printf "%s\\n" "${{COMPREPLY[@]}}"'
    result = subprocess.run(["bash", "-c", script, "bash", str(harness.BUILD / command), *words], text=True, check=True,
                            capture_output=True, timeout=harness.TIMEOUT_S)
    assert result.stderr == ""
    return set(result.stdout.split())


def test_completion(help_text):
    assert complete("-x", "") == names(help_text)
    assert complete("-x", "aggsort") == {name for name in names(help_text) if name.startswith("aggsort")}
    assert complete("-") == letters(help_text) | {"--help", "--version"}
    assert complete("-x", "place", "=") == {"auto", "kernel", "target"}
    assert complete("-q", "-x", "place", "=", "k") == {"kernel"}
    assert complete("-s", str(PAGE)[:-1]) == {str(PAGE)}
    assert "1" in complete("-p", "")
    assert complete("-x", "agent", "=") == {"auto", "always", "never"}
    assert complete("-x", "bufpolicy", "=") == {"switch", "ring", "fill", "wait"}
    assert complete("-x", "oformat", "=") == {"text", "json", "xml"}


def test_completion_of_dtap():
    page = harness.TOP / "share" / "completions" / "dtap"
    assert {"agent", "dtrace", "stap", "--version"} <= complete("", page=page, command="dtap")
    assert complete("agent", "", page=page, command="dtap") == {"install", "remove", "status", "--python", "--root", "--help"}


def options_of(command):
    """The options that --help shows."""
    text = harness.run([harness.BUILD / "dtap", command, "--help"]).out
    return {name for pair in re.findall(r"^  (?:(-\w), |    )(--\w+)", text, re.M) for name in pair if name}


@pytest.mark.parametrize("page", ["dtap"])
def test_completion_of_commands(page):
    """Whatever --help shows, one's own options of a command too."""
    found = complete("trace", "-", page=harness.TOP / "share" / "completions" / page, command="dtap")
    assert found == options_of("trace") and "--least" in found


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_completion_of_fish(tmp_path):
    def offers(line):
        script = f"source {harness.TOP}/share/completions/dtap.fish; complete -C '{line}'"
        env = {"PATH": f"{harness.BUILD}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
        result = harness.run(["fish", "--no-config", "-c", script], env=env)
        assert result.code == 0, result
        return {text.partition("\t")[0] for text in result.out.splitlines()}
    assert {"trace", "record", "dump", "dtrace"} <= offers("dtap ")
    assert options_of("trace") <= offers("dtap trace -") | offers("dtap trace --")


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_completion_of_zsh(tmp_path):
    """Its two lists, as _describe is given them; the rest is zsh's own."""
    script = f"""
        words=(dtap trace -); CURRENT=3
        _describe() {{ print -l -- ${{(P)4}} }}
        source {harness.TOP}/share/completions/_dtap
        print COMMANDS; CURRENT=2 _dtap"""
    env = {"PATH": f"{harness.BUILD}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    result = harness.run(["zsh", "-f", "-c", script], env=env)
    options, _, commands = result.out.partition("COMMANDS\n")
    assert result.code == 0, result
    assert {line.partition(":")[0] for line in options.splitlines()} == options_of("trace")
    assert {"trace", "record", "dump", "dtrace"} <= {line.partition(":")[0] for line in commands.splitlines()}


COMMANDS = sorted((harness.TOP / "share" / "commands").glob("*.d"))


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_pages_of_commands(tmp_path):
    """One for each ready-made command, with the options that its help shows; sound as the others are."""
    result = harness.run([harness.TOP / "tools" / "command-pages", harness.TOP, tmp_path])
    assert result.code == 0, result
    assert {path.name for path in tmp_path.iterdir()} == {f"dtap-{path.stem}.1" for path in COMMANDS}
    for path in COMMANDS:
        page = tmp_path / f"dtap-{path.stem}.1"
        test_manual_is_sound(page)
        found = set(re.findall(r"(?<![\w-])-+\w+", " ".join(
            line.replace("Fl ", "-") for line in page.read_text().splitlines() if line.startswith(".It Fl "))))
        assert found == options_of(path.stem), path


@pytest.mark.parametrize("command", ["diff", "dump", "view"])
def test_pages_and_completion_of_other_commands(command):
    """What their help shows, neither less nor more; and the list of commands has them."""
    shown = options_of(command)
    page = PAGE.with_name(f"dtap-{command}.1").read_text()
    items = [line for line in page.splitlines() if line.startswith(".It Fl ")]
    assert shown and set(re.findall(r"(?<![\w-])-+\w+", " ".join(items).replace("Fl ", "-"))) == shown
    completion = harness.TOP / "share" / "completions" / "dtap"
    assert command in complete("", page=completion, command="dtap")
    assert complete(command, "-", page=completion, command="dtap") == shown
    assert f".Xr dtap-{command} 1" in PAGE.with_name("dtap.1").read_text()


@pytest.mark.parametrize("page", sorted((harness.TOP / "doc" / "howto").glob("*.md")), ids=lambda page: page.stem)
def test_paths_in_howtos(page):
    paths = re.findall(r"`((?:src|tests|doc|share)/[\w/.-]+)`", page.read_text())
    assert [path for path in paths if "NAME" not in path and not (harness.TOP / path).exists()] == []
