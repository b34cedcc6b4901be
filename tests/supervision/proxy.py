"""A proxy in front of PostgreSQL's socket whose connections can go dead without a word."""

import contextlib
import shutil
import socket
import tempfile
import threading
from pathlib import Path


class Proxy:
    """
    Passes bytes on between a folder of its own, to be used as the host, and the real one.

    A connection that was made dead stays open on both sides and passes nothing on any more.
    """

    def __init__(self, host, port):
        self.folder = Path(tempfile.mkdtemp(prefix="runstore-proxy-"))
        self._target = f"{host}/.s.PGSQL.{port}"
        self._pairs = []
        self._new_are_dead = False
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(self.folder / f".s.PGSQL.{port}"))
        self._server.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def kill_silently(self, *, having_sent=b"", new_ones=False):
        """Make the connections dead over which these bytes were sent, and those to come."""
        self._new_are_dead = new_ones
        for pair in self._pairs:
            if having_sent in pair.sent:
                pair.is_dead = True

    def heal(self):
        """Let new connections live. Those that are dead stay so."""
        self._new_are_dead = False

    def close(self):
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for pair in self._pairs:
            pair.close()
        shutil.rmtree(self.folder)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._pairs.append(_Pair(client, self._target, is_dead=self._new_are_dead))


class _Pair:
    def __init__(self, client, target, *, is_dead):
        self.is_dead = is_dead
        self.sent = b""
        self._client = client
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(target)
        for source, sink in ((client, self._server), (self._server, client)):
            threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def close(self):
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if source is self._client:
                    self.sent += data
                if not self.is_dead:
                    sink.sendall(data)
            if not self.is_dead:
                sink.shutdown(socket.SHUT_WR)
