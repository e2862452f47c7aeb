# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""A server of simulated times for a program on virtual GPUs, on a socket for this user only.

A rank says when it begins a call, and asks when the call ends. The last rank to begin gives the
begin, and all ranks end together. A rank begins a message with the bytes and the number of all
messages that share its links with it, and the message takes the time of the larger load of both
ranks. The other end is src/towpath/virtual_gpu/device/times.hpp.
"""

from __future__ import annotations

import os
import secrets
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any

# The time of a call in us from its collective, bytes, ranks and nodes. For messages: from MESSAGE,
# the mean bytes of one, ranks, nodes, and the number that a rank sends or receives at once.
CallTime = Callable[..., float]
MESSAGE = "send_recv"  # from one rank to another, which asks when it ends
_NS_PER_US = 1000.0
_TIMES_KEPT = 4096
_CREDENTIALS = "3i"  # struct ucred: process, user and group


@dataclass
class _Calls:
    """Calls under way, and the times of earlier ones."""

    time_us: CallTime
    lock: threading.Lock = field(default_factory=threading.Lock)
    simulation: threading.Lock = field(default_factory=threading.Lock)
    begins_ns: dict[str, int] = field(default_factory=dict)
    loads: dict[str, tuple[int, int]] = field(default_factory=dict)  # bytes and messages
    ends: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.time_us = lru_cache(maxsize=_TIMES_KEPT)(self.time_us)

    def answer(self, line: str) -> str:
        word, identity, *words = line.split()
        if word == "begin":
            begin_ns, *load = map(int, words)
            with self.lock:
                self.begins_ns[identity] = max(begin_ns, self.begins_ns.get(identity, begin_ns))
                if load:
                    largest = max((load[0], load[1]), self.loads.get(identity, (0, 0)))
                    self.loads[identity] = largest
            return "ok"
        collective, *numbers = words
        size_bytes, ranks, nodes, own_ns = map(int, numbers)
        call: tuple[Any, ...] = (collective, size_bytes, ranks, nodes)
        if collective == MESSAGE:
            with self.lock:
                load_bytes, messages = self.loads[identity]
            call = (collective, load_bytes // messages, ranks, nodes, messages)
        # Other calls begin and end while one is simulated.
        with self.simulation:
            duration_ns = round(self.time_us(*call) * _NS_PER_US)
        with self.lock:
            begin_ns = max(own_ns, self.begins_ns.get(identity, own_ns))
            self.ends[identity] = self.ends.get(identity, 0) + 1
            if self.ends[identity] == (1 if collective == MESSAGE else ranks):
                del self.ends[identity]
                self.begins_ns.pop(identity, None)
                self.loads.pop(identity, None)
            return str(begin_ns + duration_ns)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        for line in self.rfile:
            try:
                answer = self.server.calls.answer(line.decode())
            except Exception as error:  # the program ends with it, whatever it is
                answer = f"error {' '.join(str(error).split()) or type(error).__name__}"
            self.wfile.write(f"{answer}\n".encode())


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, name: str, calls: _Calls) -> None:
        self.calls = calls
        super().__init__(f"\0{name}", _Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        size = struct.calcsize(_CREDENTIALS)
        peer = request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return bool(struct.unpack(_CREDENTIALS, peer)[1] == os.geteuid())


class TimeServer:
    """Answers until the block ends.

    Attributes:
        name: of the socket, which ends with this process, because there is no file of this name.
    """

    def __init__(self, time_us: CallTime) -> None:
        """Opens the socket.

        Args:
            time_us: the time of a call, asked once for each size.
        """
        self.name = f"towpath-times-{secrets.token_hex(8)}"
        self._server = _Server(self.name, _Calls(time_us))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> TimeServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
