"""A real PostgreSQL for the tests: one server for the run, on a socket in a folder of its own, gone when its parent is.

PostgreSQL refuses to run as root, so root becomes `postgres` or `nobody` for it. Each test that asks for a `database`
gets one that is empty; `PostgresServer(durable=True)` is for benchmarks, where a commit must reach the disk.
"""

import atexit
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from tests.kafka.broker import wait_for
from tests.kafka.leash import build_leashed_command

ROOT = Path(__file__).resolve().parents[2]

USER = "tidings"

START_S = 60

FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""What tests can do without: the machine does not lose power in the middle of one."""

SETTINGS = ("listen_addresses=", "shared_buffers=64MB", "max_connections=80", "logging_collector=off")


class PostgresFailed(Exception):
    """The server did not start."""


class PostgresServer:
    """A server that runs; `make_database` makes a database and returns its URL."""

    def __init__(self, programs, *, durable=False, settings=()):
        self._programs = Path(programs)
        self.folder = Path(tempfile.mkdtemp(prefix="tidings-postgres-"))
        self._settings = (*SETTINGS, *(() if durable else FAST), *settings)
        self._numbers = itertools.count(1)
        self._prepare()
        self.start()

    @property
    def pid(self):
        return self._process.pid

    def make_url(self, database, user=USER, password=None):
        """Return the URL of a database of this server."""
        secret = f":{password}" if password else ""
        return f"postgresql+psycopg://{user}{secret}@/{database}?host={self.folder}"

    def make_database(self, template="template1"):
        """Make an empty database, or a copy of another (by name or URL), and return its URL."""
        name, template = f"test_{next(self._numbers)}", self.name_database(template) or template
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.make_url(name)

    def drop_database(self, url):
        """Remove a database, whoever is connected to it."""
        self.execute(f"DROP DATABASE {self.name_database(url)} WITH (FORCE)")

    def name_database(self, url):
        """Return the name of a database of this server from its URL."""
        return url.partition("@/")[2].partition("?")[0]

    def execute(self, sql):
        """Run a statement as the superuser."""
        with self.connect() as connection:
            return connection.execute(sql)

    def connect(self, database="postgres"):
        """Connect as the superuser."""
        import psycopg

        return psycopg.connect(dbname=database, user=USER, host=str(self.folder), autocommit=True)

    def start(self):
        """Start it, and wait until it answers."""
        words = ["-D", self.folder / "data", "-k", self.folder]
        settings = [word for setting in self._settings for word in ("-c", setting)]
        with (self.folder / "server.log").open("ab") as log:
            command = build_leashed_command(*self._as_user(), self._programs / "postgres", *words, *settings)
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        atexit.register(self.stop)
        wait_for(lambda: self._process.poll() is not None or self._answers(), START_S)
        if not self._answers():
            msg = f"PostgreSQL did not start:\n{self.read_words()[-3000:]}"
            raise PostgresFailed(msg)

    def crash(self):
        """End it as a crash would, without a word to its clients; `start` starts it again."""
        self._end(signal.SIGQUIT)

    def stop(self):
        """End it; nothing of it is kept."""
        self._end(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def read_words(self):
        """Return what the server said."""
        return (self.folder / "server.log").read_text(errors="replace")

    def _prepare(self):
        user = _choose_user()
        if user is not None:
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        words = ["-D", self.folder / "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale", "C", "--no-sync"]
        command = [*self._as_user(leashed=False), self._programs / "initdb", *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=self.folder)
        if done.returncode:
            shutil.rmtree(self.folder, ignore_errors=True)
            msg = f"initdb failed:\n{done.stdout[-1000:]}{done.stderr[-2000:]}"
            raise PostgresFailed(msg)
        self._ask_for_passwords()

    def _ask_for_passwords(self):
        """Let the role `guarded` in by its password only."""
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\nlocal all all trust\n")

    def _as_user(self, *, leashed=True):
        """The beginning of a command: as another user where we are root; the leash is lost with that, so again."""
        user = _choose_user()
        if user is None:
            return []
        leash = ["--pdeathsig", "KILL"] if leashed else []
        return ["setpriv", "--reuid", user.pw_uid, "--regid", user.pw_gid, "--clear-groups", *leash, "--"]

    def _answers(self):
        import psycopg

        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _end(self, number):
        atexit.unregister(self.stop)
        if self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(START_S)


def _choose_user():
    """The user that the server runs as, where we are root."""
    if os.getuid() != 0:
        return None
    names = {user.pw_name: user for user in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def find_programs(tool=ROOT / "tools" / "postgres"):
    """Return the folder of PostgreSQL's programs, or nothing; the tool installs none for a test."""
    done = subprocess.run([str(tool), "--find"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def require_programs(*, environ=os.environ):
    """Return the folder of the programs; without them skip the test, and say so, or fail it in the gate."""
    if programs := find_programs():
        return programs
    if environ.get("CI") == "true":
        pytest.fail("no PostgreSQL in the gate: `make test` or `tools/postgres` installs it", pytrace=False)
    pytest.skip("no PostgreSQL: `make test` or `tools/postgres` installs it")
    return None


@pytest.fixture(scope="session")
def postgres():
    """The server of this run, started when the first test asks for it."""
    server = PostgresServer(require_programs())
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres):
    """The URL of a database of its own for a test."""
    url = postgres.make_database()
    yield url
    postgres.drop_database(url)
