"""The one way out of a box: a loopback port of the held namespace, passed on to the gateway's unix socket."""

import contextlib
import selectors
import socket
import threading

CONNECTIONS = 64
IDLE_S = 600
GATEWAY = "/run/boxeval/gateway.sock"


class Forwarder:
    """Open while a candidate with a model runs; closing it cuts every connection."""

    def __init__(self):
        self.listener = None
        self.live = set()
        self.lock = threading.Lock()

    def open(self, port):
        self.close()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(CONNECTIONS)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def close(self):
        if self.listener is not None:
            with contextlib.suppress(OSError):
                self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None
        with self.lock:
            for connection in self.live:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                if len(self.live) >= CONNECTIONS or self.listener is not listener:
                    client.close()
                    continue
                self.live.add(client)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            with client, socket.socket(socket.AF_UNIX) as gateway:
                gateway.connect(GATEWAY)
                pump(client, gateway)
        except OSError:
            pass
        finally:
            with self.lock:
                self.live.discard(client)


def pump(client, gateway):
    """Copy both ways until both sides have ended or nothing moved for IDLE_S."""
    other = {client: gateway, gateway: client}
    with selectors.DefaultSelector() as selector:
        for end in other:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(IDLE_S)
            if not ready:
                return
            for key, _ in ready:
                data = key.fileobj.recv(65536)
                if data:
                    other[key.fileobj].sendall(data)
                else:
                    selector.unregister(key.fileobj)
                    with contextlib.suppress(OSError):
                        other[key.fileobj].shutdown(socket.SHUT_WR)
