# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Messages between a launcher and its ranks: a length and a pickle, over one socket per rank.

Neither end uses standard output for messages, so a rank may print any text.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
import threading
from typing import Any, Protocol

_LENGTH = struct.Struct("<Q")
_CHUNK_BYTES = 1 << 20


class Posting(Protocol):
    """A receiver of notices about other ranks, such as `_core.FailureNotice`."""

    def post(self, culprit: int, what: str) -> None:
        """Stores a notice about the rank `culprit`."""


def framed(message: Any) -> bytes:
    """The message in the form that is transmitted."""
    body = pickle.dumps(message)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Assembles messages from pieces of any size."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> list[Any]:
        """The messages that this piece completes."""
        self._bytes += piece
        messages = []
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                break
            messages.append(pickle.loads(self._bytes[_LENGTH.size : end]))
            del self._bytes[:end]
        return messages


class RankChannel:
    """The rank's end of the channel. The launcher's end closes when the launcher ends."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._sending = threading.Lock()

    def receive(self) -> Any:
        """Waits for the next message. Ends the process if the launcher has ended."""
        header = self._exactly(_LENGTH.size)
        return pickle.loads(self._exactly(_LENGTH.unpack(header)[0]))

    def send(self, message: Any) -> None:
        """Sends a message. Ends the process silently if the launcher has ended."""
        data = framed(message)
        try:
            with self._sending:
                self._socket.sendall(data)
        except OSError:
            os._exit(1)

    def watch(self, notice: Posting) -> None:
        """Starts a thread that forwards the launcher's notices about other ranks."""

        def listen() -> None:
            while True:
                message = self.receive()
                notice.post(message["culprit"], message["what"])

        threading.Thread(target=listen, daemon=True).start()

    def _exactly(self, size_bytes: int) -> bytes:
        data = bytearray()
        while len(data) < size_bytes:
            try:
                piece = self._socket.recv(min(size_bytes - len(data), _CHUNK_BYTES))
            except OSError:
                piece = b""
            if not piece:
                os._exit(1)
            data += piece
        return bytes(data)
