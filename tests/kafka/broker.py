"""A real Kafka broker for the tests: one node in KRaft mode, on loopback ports, gone when its parent is.

It has three doors: plain, SASL with a user and a password (PLAIN), and the same over TLS (SCRAM), with a certificate
that is its own authority, `ca`. `stop` and the interpreter's end end it; so does the leash, when neither comes to pass.
"""

import atexit
import base64
import os
import secrets
import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.kafka import wire
from tests.kafka.leash import build_leashed_command

FOLDER = Path(__file__).resolve().parents[2] / ".kafka"
"""Where tools/kafka-jars puts what it fetches."""

BROKER, CONNECTOR = FOLDER / "broker", FOLDER / "connector"

USER, PASSWORD = "tidings", "a-password-of-the-tests"

DOORS = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")
"""What clients speak at each of the ports."""

START_S = 90
"""Eight seconds on an idle machine; builds run several things at once."""

TRIES = 3
"""A port found free may be taken before the broker asks for it."""

JAVA = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""The second compiler and the many-threaded collector do not pay for a broker of a minute's life."""

PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={doors},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={doors}
listener.security.protocol.map=\
PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.sasl_ssl.ssl.keystore.location={keystore}
listener.name.sasl_ssl.ssl.keystore.password={password}
log.dirs={logs}
auto.create.topics.enable=false
delete.topic.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=2097152
log.cleaner.threads=1
log.segment.bytes=16777216
"""


class BrokerFailed(Exception):
    """The broker did not start."""


class Broker:
    """A broker that runs: `servers`, `sasl_servers` and `tls_servers` are its addresses."""

    user, password = USER, PASSWORD

    def __init__(self, folder, *, jars=BROKER):
        self._folder, self._jars = Path(folder), jars
        self.ca = self._make_certificate()
        for _ in range(TRIES):
            self._ports = _find_free_ports(4)
            self._start()
            if self._wait_for_answers():
                break
            self.stop()
        else:
            msg = f"the Kafka broker did not start:\n{self.read_words()[-3000:]}"
            raise BrokerFailed(msg)

    @property
    def servers(self):
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def sasl_servers(self):
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def tls_servers(self):
        return f"127.0.0.1:{self._ports[2]}"

    @property
    def address(self):
        return "127.0.0.1", self._ports[0]

    @property
    def pid(self):
        return self._process.pid

    def read_words(self):
        """Return what the broker said: its errors."""
        return (self._folder / "broker.log").read_text(errors="replace")

    def stop(self):
        """End the broker at once; nothing of it is kept."""
        atexit.unregister(self.stop)
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder / "logs", ignore_errors=True)

    def _start(self):
        *ports, controller = self._ports
        doors = ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(DOORS, ports, strict=True))
        names = {"doors": doors, "controller": controller, "keystore": self._keystore, "logs": self._folder / "logs"}
        properties = self._folder / "server.properties"
        properties.write_text(PROPERTIES.format(user=USER, password=PASSWORD, **names))
        cluster = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().strip("=")
        scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
        format_words = ("format", "-t", cluster, "-c", properties, "--add-scram", scram)
        self._run("kafka.tools.StorageTool", *format_words).wait(START_S)
        self._process = self._run("kafka.Kafka", properties)
        atexit.register(self.stop)

    @property
    def _keystore(self):
        return self._folder / "broker.p12"

    def _make_certificate(self):
        """Make a key with a certificate of its own, and return the file with the certificate alone."""
        certificate = self._folder / "broker.pem"
        store = ["-keystore", self._keystore, "-storepass", PASSWORD, "-alias", "broker"]
        name = ["-keyalg", "EC", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1", "-validity", "2"]
        for words in (["-genkeypair", *store, *name], ["-exportcert", "-rfc", "-file", certificate, *store]):
            command = [Path(find_java()).with_name("keytool"), *words]
            subprocess.run(list(map(str, command)), check=True, capture_output=True)
        return certificate

    def _run(self, *program):
        command = build_leashed_command(find_java(), *JAVA, "-cp", f"{self._jars}/*", *program)
        with (self._folder / "broker.log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _wait_for_answers(self):
        """Wait until the broker knows itself, so that a topic can be made; false when it ended instead."""
        return wait_for(lambda: self._process.poll() is not None or _is_ready(self.address), START_S) and (
            self._process.poll() is None
        )


def find_java():
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def wait_for(condition, seconds):
    """Ask until the answer is yes, and return it; or no, when the time is up."""
    until = time.monotonic() + seconds
    while not (answer := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return answer


def _is_ready(address):
    try:
        return bool(wire.list_brokers(address))
    except OSError:
        return False


def find_free_port():
    """Return a port that nobody listens on."""
    return _find_free_ports(1)[0]


def _find_free_ports(number):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [line.getsockname()[1] for line in sockets]
    for line in sockets:
        line.close()
    return ports
