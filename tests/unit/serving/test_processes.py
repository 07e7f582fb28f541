"""The supervisor of several processes, without processes."""

import signal
import threading

from ranmask.serving.processes import Supervisor
from ranmask.serving.settings import ServiceSettings


def test_a_signal_that_does_not_wake_the_main_thread_is_heard(monkeypatch):
    """As one that comes just before it waits: here another thread is interrupted instead."""
    supervisor = Supervisor(ServiceSettings(processes=2))
    monkeypatch.setattr(Supervisor, "_keep", lambda self: self._ending.wait())
    ended, heard = threading.Event(), []

    def tell():
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        heard.append(ended.wait(10))
        supervisor._ending.set()  # else the test would never end

    telling = threading.Timer(0.2, tell)
    telling.start()
    try:
        supervisor.run()
    finally:
        ended.set()
        telling.join()
    assert heard == [True]
