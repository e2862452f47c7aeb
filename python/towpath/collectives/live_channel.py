# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Messages between a launcher and its ranks: each a length and a pickle, over a socket per rank.

Neither end uses standard output for it, so that a rank may print what it likes.
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
    """A place where notice of other ranks goes, such as `_core.FailureNotice`."""

    def post(self, culprit: int, what: str) -> None:
        """Stores what happened to the rank `culprit`."""


def framed(message: Any) -> bytes:
    """The message as it travels."""
    body = pickle.dumps(message)
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Puts messages together from pieces of any size."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, piece: bytes) -> list[Any]:
        """The messages that are complete with this piece."""
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
    """The rank's end. The launcher's end of it closes when the launcher ends."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._sending = threading.Lock()

    def receive(self) -> Any:
        """The next message. The process ends when the launcher has ended."""
        header = self._exactly(_LENGTH.size)
        return pickle.loads(self._exactly(_LENGTH.unpack(header)[0]))

    def send(self, message: Any) -> None:
        """Sends it. The process ends, without a word, when the launcher has ended."""
        data = framed(message)
        try:
            with self._sending:
                self._socket.sendall(data)
        except OSError:
            os._exit(1)

    def watch(self, notice: Posting) -> None:
        """Passes on, from a thread of its own, what the launcher says of other ranks."""

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
