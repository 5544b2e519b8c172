"""A container's stdin and stdout as one framed byte stream.

The engine wraps what a container writes into blocks of its own (stream number, length); inside these run
the frames of the shim and the keeper: one byte type, four bytes big-endian length, payload. All of it is
read as hostile input.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

from boxeval.errors import BoxError
from boxeval.sandbox.engine import Engine, engine_errors
from boxeval.sandbox.waits import Waits

MAX_FRAME = 1 << 20
MAX_STDERR = 4096
AT_ONCE = 1 << 16
STDOUT = 1


class Attachment:
    """One attached container. Not safe for two readers; `close` may come from any thread."""

    def __init__(self, connection: socket.socket, keep: Any, input_s: float | None = None) -> None:
        """`input_s` is for the box to take what is sent to it at once."""
        self._socket = connection
        self._input_s = Waits().input_s if input_s is None else input_s
        self._keep = keep  # the SDK's response owns the connection
        self._held = bytearray()
        self._stream = STDOUT
        self._block_left = 0
        self.stderr = b""

    @classmethod
    def open(cls, engine: Engine, container: str) -> Attachment:
        """Attach before the start, so that nothing is missed."""
        with engine_errors("attach to a container"):
            raw: Any = engine.api.attach_socket(
                container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
        connection: socket.socket = getattr(raw, "_sock", raw)
        return cls(connection, raw, engine.waits.input_s)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Send one frame whole, or raise BoxError."""
        self.send_all(((kind, payload),))

    def send_all(self, frames: Iterable[tuple[bytes, bytes]]) -> None:
        """Send frames, small ones together."""
        held = bytearray()
        try:
            self._socket.settimeout(self._input_s)
            for kind, payload in frames:
                held += kind + struct.pack(">I", len(payload)) + payload
                if len(held) > AT_ONCE:
                    self._socket.sendall(held)
                    held.clear()
            self._socket.sendall(held)
        except OSError as error:
            raise BoxError(f"the box does not take its input: {error}") from error

    def receive(self, until: float) -> tuple[bytes, bytes] | None:
        """Next frame, or None at the end of the stream.

        Raises TimeoutError after `until` (monotonic seconds).
        """
        head = self._exactly(5, until)
        if head is None:
            return None
        size = int.from_bytes(head[1:], "big")
        if size > MAX_FRAME:
            raise BoxError("a box sent a frame that is too large")
        payload = self._exactly(size, until)
        return None if payload is None else (head[:1], payload)

    def _exactly(self, size: int, until: float) -> bytes | None:
        while len(self._held) < size:
            if not self._read_piece(until):
                return None
        data = bytes(self._held[:size])
        del self._held[:size]
        return data

    def _read_piece(self, until: float) -> bool:
        """Take the next bytes of a block, however long its head says that it is; False at the end."""
        if self._block_left == 0:
            head = self._raw(8, until)
            if len(head) < 8:
                return False
            self._stream, self._block_left = head[0], int.from_bytes(head[4:], "big")
        data = self._raw(min(self._block_left, 65536), until)
        self._block_left -= len(data)
        if self._stream == STDOUT:
            self._held += data
        else:
            self.stderr = (self.stderr + data)[-MAX_STDERR:]
        return bool(data) or self._block_left == 0

    def _raw(self, size: int, until: float) -> bytes:
        """Exactly `size` bytes, fewer only at the end of the stream."""
        data = bytearray()
        while len(data) < size:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._socket.settimeout(left)
            try:
                piece = self._socket.recv(size - len(data))
            except TimeoutError:
                raise
            except OSError:
                piece = b""
            if not piece:
                break
            data += piece
        return bytes(data)

    def close(self) -> None:
        """Hang up. The other side sees the end of its stdin and kills everything it has."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        response = getattr(self._keep, "_response", None)
        if response is not None:
            response.close()
        self._keep.close()
        self._socket.close()
