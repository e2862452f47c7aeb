# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Small messages between processes of this host: `Mailbox`."""

from __future__ import annotations

from towpath import _core
from towpath.errors import ConfigError


class Mailbox:
    """A mailbox of this process, and messages to those of others of this user on this host.

    A message is a cache line of up to 56 bytes, without a system call. Messages of one sender
    arrive in order and exactly once. Several threads may share a mailbox: one sends at a time, and
    one receives. Make it after fork(), in each process.

    Attributes:
        name: by which other processes send to it.
    """

    def __init__(self, name: str, *, depth_messages: int = 256, senders_max: int = 64) -> None:
        """Makes the mailbox; it exists until `close`, or until the process ends.

        Args:
            name: 1 to 64 bytes; no other mailbox of this user has it.
            depth_messages: how many messages of each sender wait here at most, a power of two.
            senders_max: how many processes send to it at a time at most.

        Raises:
            ConfigError: an argument is wrong.
            RuntimeError: there is a mailbox of that name already.
        """
        try:
            context = _core.LiveMailboxContext(name, depth_messages, senders_max)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        self._context: _core.LiveMailboxContext | None = context
        self.name = name

    def __repr__(self) -> str:
        state = "" if self._context is not None else ", closed"
        return f"<towpath.Mailbox {self.name!r}{state}>"

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _open(self) -> _core.LiveMailboxContext:
        if self._context is None:
            raise ValueError("the mailbox is closed")
        return self._context

    @property
    def address(self) -> str:
        """`name`: what others send to. The simulated mailbox has the same property."""
        return self.name

    def close(self) -> None:
        """Gives the name back; messages that were not received are gone."""
        self._context = None

    def send(self, to: str, payload: bytes, *, timeout_s: float = 60.0) -> None:
        """Returns when the message will be received, even if this process is killed.

        That holds for as long as a process keeps the mailbox. While the mailbox has no room for
        this sender, it waits.

        Args:
            to: name of a mailbox.
            payload: up to 56 bytes.
            timeout_s: how long to wait for room, in seconds.

        Raises:
            ValueError: the payload is too large.
            RuntimeError: there is no such mailbox.
            TransportError: it was full for so long ("timeout"), or its receiver is gone
                ("peer_died").
        """
        self._open.send(to, payload, timeout_s)

    def try_send(self, to: str, payload: bytes) -> bool:
        """As `send`, but False when there is no room, or while another thread sends.

        Args:
            to, payload: as for `send`.

        Returns:
            Whether the message will be received.

        Raises:
            ValueError, RuntimeError: as for `send`.
        """
        return self._open.try_send(to, payload)

    def receive(self, *, timeout_s: float = 60.0) -> bytes | None:
        """The next message.

        Args:
            timeout_s: how long to wait for it, in seconds.

        Returns:
            Its payload; None when none came in time.
        """
        return self._open.receive(timeout_s)

    def try_receive(self) -> bytes | None:
        """The next message, if there is one.

        Returns:
            The payload, or None when there is none, or while another thread receives.
        """
        return self._open.try_receive()
