"""The command line as a process: what it loads, how it ends, what it never prints."""

import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from textwrap import dedent

import pytest
from tests.cli.samples import write_lines

import tidings as td

HEAVY = {"numba", "pyarrow", "shapely", "pint", "lark", "numpy", "pyspark", "pandas", "re2"}
HEAVY |= {"fastapi", "uvicorn", "sqlalchemy", "alembic", "httpx", "orjson"}
HELPS = ["--version", "--help", "match --help", "concept show --help", "serve --help", "sub add --help"]


@pytest.mark.parametrize("arguments", [line.split() for line in HELPS], ids=HELPS)
def test_help_loads_none_of_the_large_packages(arguments):
    program = f"""
        import sys
        from tidings.cli.app import app
        app({arguments!r}, standalone_mode=False)
        print(sorted(sys.modules), file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in eval(done.stderr.splitlines()[-1])}
    assert not loaded & HEAVY


def test_the_version_is_the_package_s(tidings):
    assert tidings("--version").out == f"tidings {td.__version__}\n"


COMMANDS = ["parse", "match", "test", "why", "explain", "compile", "doctor", "concept show", "concept check", "serve"]
COMMANDS += ["service key add", "service key list", "service key revoke", "service erase", "service train"]
VERBS = "add edit pause resume remove list show matches watch try import export"
COMMANDS += [f"sub {verb}" for verb in VERBS.split()]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(tidings, command):
    done = tidings(*command.split(), "--help")
    assert done.code == 0
    assert "For example" in done.out
    assert f"tidings {command}" in done.out


def test_every_command_is_in_the_help(tidings):
    listed = tidings("--help").out
    assert all(command.split()[0] in listed for command in COMMANDS)


def test_a_misspelt_command_is_wrong_usage(tidings):
    done = tidings("macth")
    assert done.code == 2
    assert "match" in done.err


def test_every_option_that_is_a_setting_has_its_variable(tidings, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    for command in ("match", "test", "explain", "compile"):
        listed = tidings(command, "--help").out
        for name in ("SUBSCRIPTIONS", "SCHEMA", "ONTOLOGY", "REGIONS", "MATCHER", "FORMAT", "JSON"):
            assert f"TIDINGS_{name}" in listed, (command, name)


# How it ends -----------------------------------------------------------------------------------


@pytest.fixture
def many(tmp_path):
    return write_lines(tmp_path / "many.jsonl", [{"year": 2020}] * 20_000)


def test_a_reader_that_stops_early_ends_it_quietly(spawn, searches, many):
    process = spawn("match", "-s", searches, "-e", many)
    assert json.loads(process.stdout.readline()) == {"event": 0, "subscription": "s3"}
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0


def test_ctrl_c_ends_it_quietly_with_130(spawn, searches):
    process = spawn("match", "-s", searches, "-e", "-", stdin=subprocess.PIPE)
    process.stdin.write(b'{"year": 2020}\n')
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert process.stderr.read() == b""


def test_each_event_is_answered_as_it_comes(spawn, searches):
    process = spawn("match", "-s", searches, "-e", "-", "-q", stdin=subprocess.PIPE)
    for year, number in ((2020, 0), (2021, 1), (2022, 3)):
        process.stdin.write(b'{"year": %d}\n' % year)
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"event": number, "subscription": "s3"}
        process.stdin.write(b"\n" if number else b"")
    process.stdin.close()
    assert process.wait(timeout=60) == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_one_message(spawn, searches, many):
    with open("/dev/full", "wb") as full:
        process = spawn("match", "-s", searches, "-e", many, stdout=full)
        assert process.stderr.read() == b"error: cannot write the output: No space left on device\n"
        assert process.wait(timeout=60) == 1


def test_output_is_utf8_whatever_the_terminal_says(spawn):
    process = spawn("parse", "a = 'Žluťoučký'", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert process.communicate()[0].decode() == "a = 'Žluťoučký'\n"


def test_python_dash_m_is_the_same_program(spawn):
    assert spawn("--version").communicate()[0].decode() == f"tidings {td.__version__}\n"


# On a terminal ---------------------------------------------------------------------------------


def read_terminal(end, into):
    try:
        while chunk := os.read(end, 65536):
            into.write(chunk)
    except OSError:  # how Linux says that the other end is closed
        pass


def test_a_terminal_gets_a_bar_and_the_pipe_stays_clean(spawn, searches, many):
    ours, theirs = pty.openpty()
    process = spawn("match", "-s", searches, "-e", many, stderr=theirs, env={"TERM": "xterm"})
    os.close(theirs)
    shown = io.BytesIO()
    reader = threading.Thread(target=read_terminal, args=(ours, shown))  # a full terminal would stop the process
    reader.start()
    lines = process.communicate()[0].splitlines()
    reader.join()
    os.close(ours)
    assert all(set(json.loads(line)) == {"event", "subscription"} for line in lines)
    assert "━" in shown.getvalue().decode()
    assert b"20,000 events" in shown.getvalue()


# Nothing a user can type -----------------------------------------------------------------------


@pytest.fixture
def strange(tmp_path):
    """Names of things that are not what a command asks for."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "latin.toml").write_bytes('name = "Žlutý"'.encode("iso8859-2"))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "broken.jsonl.gz").write_bytes(b"\x1f\x8b broken")
    (tmp_path / "no.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "deep.jsonl").write_text('{"id": 1, "filter": ' + '{"not": ' * 5000 + "1" + "}" * 5001 + "\n")
    (tmp_path / "pretty.json").write_text('[\n {"id": "s1", "filter": "a = 1"}\n]\n')
    write_lines(
        tmp_path / "wrong.jsonl", [1, None, "x", {"id": [], "filter": {}}, {"id": {}, "filter": 1}, {"id": 1.5}]
    )
    return [path.name for path in tmp_path.iterdir()] + ["nowhere", "", "\x01", "x" * 300]


USES = [
    "parse a=1 --schema {}",
    "parse a=1 --ontology {}",
    "parse a=1 --regions {}",
    "match -s {} -e ads.jsonl",
    "match -s searches.jsonl -e {}",
    "match --snapshot {} -e ads.jsonl",
    "match -s searches.jsonl -e ads.jsonl --dead-letters {}/x",
    "test -s searches.jsonl {}",
    "why -s searches.jsonl -e {} --id s1",
    "explain -s {}",
    "explain -s searches.jsonl -e {}",
    "compile -s {} -o out",
    "concept show x --ontology {}",
    "concept check {}",
]


@pytest.mark.parametrize("use", USES)
def test_strange_files_are_refused_in_words(tidings, searches, ads, strange, use):
    for name in strange:
        done = tidings(*(part.replace("{}", name) for part in use.split()))  # a traceback would be raised here
        assert done.code in (0, 1), (name, done)
        assert done.code == 0 or done.err.startswith("error: ") or done.out.startswith("FAIL"), (name, done)


def test_a_folder_is_called_a_folder(tidings, searches, strange):
    assert tidings("match", "-s", searches, "-e", "folder").err == "error: cannot read `folder`: Is a directory\n"


def test_json_over_several_lines_is_told_apart_from_json_lines(tidings, searches, strange):
    done = tidings("match", "-s", searches, "-e", "pretty.json")
    assert done.code == 1
    assert "one object on each line" in done.err
