"""Signals between processes: a socket file for whoever waits, however long the path, however the waiter ended."""

import os
import signal
import threading
import time

from tests.kafka.broker import wait_for
from tests.unit.service.store.writing import create

from tidings.service.store.opening import open_store
from tidings.service.store.sql.signals import SocketSignals


def list_sockets(folder):
    return list(folder.iterdir()) if folder.is_dir() else []


def wait_in_a_thread(signals):
    """Wait in a thread, and return it, and the list that says how long it took once it is over."""
    listening, spent = threading.Event(), []

    def wait():
        with signals.listen() as waiter:
            listening.set()
            begin = time.monotonic()
            waiter.wait(60)
            spent.append(time.monotonic() - begin)

    thread = threading.Thread(target=wait)
    thread.start()
    assert listening.wait(10)
    return thread, spent


def test_a_signal_wakes_all_who_wait(tmp_path):
    waiting = [wait_in_a_thread(SocketSignals(tmp_path / "s")) for _ in range(3)]
    SocketSignals(tmp_path / "s").notify()
    for thread, spent in waiting:
        thread.join(20)
        assert spent[0] < 20
    assert list_sockets(tmp_path / "s") == []


def test_a_path_too_long_for_a_socket_is_no_hindrance(tmp_path):
    folder = tmp_path / ("long" * 40) / "store.db.signals"
    folder.parent.mkdir()
    thread, spent = wait_in_a_thread(SocketSignals(folder))
    assert len(list_sockets(folder)) == 1
    SocketSignals(folder).notify()
    thread.join(20)
    assert spent[0] < 20


def test_the_socket_of_a_process_that_is_gone_is_removed(tmp_path):
    signals = SocketSignals(tmp_path / "s")
    child = os.fork()
    if child == 0:
        with signals.listen() as waiter:
            waiter.wait(60)
        os._exit(0)
    wait_for(lambda: list_sockets(tmp_path / "s"), 20)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list_sockets(tmp_path / "s")) == 1
    signals.notify()
    assert list_sockets(tmp_path / "s") == []


def test_a_waiter_that_does_not_read_holds_nobody_up(tmp_path):
    signals = SocketSignals(tmp_path / "s")
    with signals.listen() as waiter:
        for _ in range(2_000):
            signals.notify()
        waiter.wait(0)


def test_a_folder_that_cannot_be_made_leaves_waiting_to_the_clock(tmp_path):
    (tmp_path / "s").write_text("a file, where the folder should be")
    signals = SocketSignals(tmp_path / "s")
    signals.notify()
    with signals.listen() as waiter:
        waiter.wait(0.01)


def test_what_is_no_socket_is_left_alone(tmp_path):
    signals = SocketSignals(tmp_path / "s")
    with signals.listen():
        (tmp_path / "s" / "notes").write_text("somebody's")
        signals.notify()
        assert (tmp_path / "s" / "notes").read_text() == "somebody's"


def test_a_write_in_another_process_is_heard(store_url):
    store = open_store(store_url)
    before = store.log.read_head()
    child = os.fork()
    if child == 0:
        try:
            other = open_store(store_url)
            other.subscriptions.write([create("a")])
            other.close()
        finally:
            os._exit(0)
    assert store.log.wait(before, 30)
    os.waitpid(child, 0)
    store.close()


def test_nobody_is_left_listening(sqlite_url, tmp_path):
    store = open_store(sqlite_url)
    store.log.wait(store.log.read_head(), 0.01)
    store.close()
    assert list_sockets(tmp_path / "store.db.signals") == []
