# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""Small messages between processes of this host: `Mailbox`."""

from __future__ import annotations

from towpath import _core
from towpath.errors import ConfigError


class Mailbox:
    """A mailbox of this process, and messages to other mailboxes of this user on this host.

    A message is one cache line of up to 56 bytes, without a system call. Messages of one sender
    arrive in order and exactly once. Several threads may share a mailbox: one at a time sends, and
    one receives. Create it after fork(), in each process.

    Attributes:
        name: the name to which other processes send.
    """

    def __init__(self, name: str, *, depth_messages: int = 256, senders_max: int = 64) -> None:
        """Creates the mailbox. It exists until `close`, or until the process ends.

        Args:
            name: 1 to 64 bytes, not in use by another mailbox of this user.
            depth_messages: maximum number of waiting messages per sender, a power of two.
            senders_max: maximum number of simultaneous senders.

        Raises:
            ConfigError: an argument is wrong. RuntimeError: a mailbox of that name exists.
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
        """`name`, the target for senders. The simulated mailbox has the same property."""
        return self.name

    def close(self) -> None:
        """Releases the name; messages that were not received are lost."""
        self._context = None

    def send(self, to: str, payload: bytes, *, timeout_s: float = 60.0) -> None:
        """Sends a message. When it returns, delivery is certain, even if this process is killed.

        This guarantee holds as long as a process keeps the mailbox. While the mailbox has no room
        for this sender, the call waits.

        Args:
            to: name of a mailbox.
            payload: up to 56 bytes.
            timeout_s: longest wait for room, in seconds.

        Raises:
            ValueError: the payload is too large. RuntimeError: there is no such mailbox.
            TransportError: it stayed full for that time ("timeout"), or its receiver is gone
            ("peer_died").
        """
        self._open.send(to, payload, timeout_s)

    def try_send(self, to: str, payload: bytes) -> bool:
        """Sends like `send`, but returns False if there is no room, or while another thread sends.

        Args:
            to, payload: see `send`.

        Returns:
            Whether the message will be received.

        Raises:
            ValueError, RuntimeError: see `send`.
        """
        return self._open.try_send(to, payload)

    def receive(self, *, timeout_s: float = 60.0) -> bytes | None:
        """Waits for the next message.

        Args:
            timeout_s: longest wait, in seconds.

        Returns:
            Its payload; None if no message arrived in time.
        """
        return self._open.receive(timeout_s)

    def try_receive(self) -> bytes | None:
        """The next message, if one has arrived.

        Returns:
            The payload; None if no message has arrived, or while another thread receives.
        """
        return self._open.try_receive()
