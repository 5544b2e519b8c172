"""Frames on stdin and stdout: one byte type, four bytes big-endian length, payload.

in   Q  a request, JSON with `op`            out  A  the answer, JSON; with `error` if it failed
both E  a tree entry, JSON; paths in base64  D    a piece of the content of the entry before
out  B  a piece of what a changed file held in the fixture, after its D
     Z  end of a stream of entries
"""

import json
import struct
import sys

CHUNK = 1 << 18
MAX_FRAME = 1 << 20


class Gone(Exception):
    """The controller closed the connection."""


class Refused(Exception):
    """A request cannot be met; the text goes into the answer."""


class OverCap(Exception):
    """What is to be read back breaks a cap of the policy; the text says which."""


class Wire:
    """One connection; requests are handled strictly one after another."""

    def __init__(self):
        self.source = sys.stdin.buffer
        self.sink = sys.stdout.buffer

    def receive(self):
        head = self._exactly(5)
        kind, size = head[:1], struct.unpack(">I", head[1:])[0]
        if size > MAX_FRAME:
            raise Gone("frame too large")
        return kind, self._exactly(size)

    def _exactly(self, size):
        data = self.source.read(size)
        if len(data) < size:
            raise Gone("end of stream")
        return data

    def send(self, kind, data=b""):
        self.sink.write(kind + struct.pack(">I", len(data)) + data)

    def send_json(self, kind, value):
        self.send(kind, json.dumps(value, separators=(",", ":")).encode())

    def flush(self):
        self.sink.flush()

    def receive_json(self, wanted):
        kind, data = self.receive()
        if kind != wanted:
            raise Gone("unexpected frame")
        return json.loads(data)
