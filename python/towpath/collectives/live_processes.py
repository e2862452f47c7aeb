# SPDX-FileCopyrightText: The Towpath authors
# SPDX-License-Identifier: Apache-2.0
"""The processes of one live run, from the launcher's side.

Each process is `python -m towpath.collectives.live_rank`. The launcher does not move data of the
run itself. If a rank fails, the other ranks report it through shared memory once they are joined,
and from the launcher's notices before that.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from towpath.collectives.live_channel import FrameReader, framed
from towpath.errors import RankError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

Message = dict[str, Any]

# Time for the other ranks to say why they ended after one of them failed, in seconds.
_LAST_WORDS_S = 5.0
_CHUNK_BYTES = 1 << 16
# Time that ranks get to start, whatever the launcher's patience is later.
_START_S = 60.0
# A job that a stopped rank does not take is given up after this many seconds.
_SEND_S = 60.0


class LiveError(RankError):
    """Failure of a live run. `reasons` has one sentence per rank that could still report.

    The first sentence is about the responsible rank.
    """

    def __init__(self, reasons: dict[int, str], rank: int | None = None, what: str = "") -> None:
        culprit = next(iter(reasons)) if rank is None else rank
        sentence = "; ".join(dict.fromkeys(reasons.values()))
        others = {other: text for other, text in reasons.items() if other != culprit}
        super().__init__(sentence, culprit, what or reasons.get(culprit, sentence), others)
        self.reasons = reasons


class RemoteTraceback(Exception):
    """The cause of a LiveError: Python's traceback of the exception in the rank."""


class RankProcesses:
    """Processes with a channel to each. As a context manager, it stops all of them at its end."""

    def __init__(self, jobs: list[Message], *, prints: bool = False) -> None:
        """Starts a process per job.

        Args:
            jobs: the job of each rank, by rank; see live_rank.
            prints: True if ranks share this process's standard output; otherwise their output goes
                to standard error.
        """
        self.processes: list[subprocess.Popen[bytes]] = []
        self._sockets: list[socket.socket] = []
        self._readers = [FrameReader() for _ in jobs]
        self._has_ended: set[int] = set()
        self._has_spoken: set[int] = set()
        self._is_done: set[int] = set()  # ranks that said so
        try:
            for rank in range(len(jobs)):
                self._start(rank, prints)
        except OSError as error:
            self.close()
            rank = len(self.processes)
            reason = f"rank {rank} of {len(jobs)} cannot be started: {error.strerror}"
            raise LiveError({rank: reason}) from None
        for rank, job in enumerate(jobs):
            self._send(rank, job)

    def __enter__(self) -> RankProcesses:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kills processes that still run, and waits for all processes."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
        for process in self.processes:
            process.wait()
        for end in self._sockets:
            end.close()

    def messages(self, silence_s: float | None) -> Iterator[tuple[int, Message | None]]:
        """Yields (rank, message) in order of arrival; the message is None when a rank has ended.

        Ends when all ranks have ended, or when no rank has sent a message for `silence_s` seconds.
        """
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as opened:
            for rank, process in enumerate(self.processes):
                if rank in self._has_ended:
                    continue
                end = os.pidfd_open(process.pid)
                opened.callback(os.close, end)
                selector.register(end, selectors.EVENT_READ, (rank, True))
                selector.register(self._sockets[rank], selectors.EVENT_READ, (rank, False))
            while selector.get_map():
                have_started = len(self._has_spoken) == len(self.processes)
                ready = selector.select(
                    silence_s if have_started or silence_s is None else max(silence_s, _START_S)
                )
                if not ready:
                    return
                for key, _ in ready:
                    if key.fd not in selector.get_map():
                        continue  # closed by an event before this one
                    rank, has_ended = key.data
                    messages, is_closed = self._read(rank, is_last=has_ended)
                    self._has_spoken.add(rank)
                    for message in messages:
                        if "is_done" in message:
                            self._is_done.add(rank)
                        yield rank, message
                    if has_ended or is_closed:
                        selector.unregister(key.fileobj)
                    if has_ended:
                        self._has_ended.add(rank)
                        with contextlib.suppress(KeyError):
                            selector.unregister(self._sockets[rank])
                        yield rank, None

    def reports(self, silence_s: float | None) -> Iterator[tuple[int, Message]]:
        """The reports of the ranks, until all of them are done.

        Args:
            silence_s: longest time without progress of any rank, in seconds; None: no limit.

        Raises:
            LiveError: a rank failed, or no rank made progress. It names the responsible rank and
            contains the reports of the other ranks.
        """
        for rank, message in self.messages(silence_s):
            if message is None:
                if rank in self._is_done:
                    continue
                self.processes[rank].wait()
                message = self._end_of(rank)
            if "error" in message:
                self._fail(rank, message)
            yield rank, message
        late = [rank for rank in range(len(self.processes)) if rank not in self._is_done]
        if late:
            raise LiveError({late[0]: f"the ranks showed no progress for {silence_s:g} s"})

    def _last_words(self, first: int) -> dict[int, Message]:
        """The final reports of ranks after `first` failed, with a moment for them to notice."""
        said: dict[int, Message] = {}
        deadline = time.monotonic() + _LAST_WORDS_S
        for rank, message in self.messages(_LAST_WORDS_S):
            if message is None and rank not in said and rank not in self._is_done:
                self.processes[rank].wait()
                message = self._end_of(rank)
            if message is not None and "error" in message:
                said.setdefault(rank, message)
            silent = set(range(len(self.processes))) - said.keys() - self._has_ended - {first}
            if time.monotonic() > deadline or all(
                _is_stopped(self.processes[each].pid) for each in silent
            ):
                break
        return said

    def announce(self, culprit: int, what: str) -> None:
        """Sends all ranks except the culprit a notice about it; "rank N" precedes `what`."""
        for rank in range(len(self.processes)):
            if rank != culprit:
                self._send(rank, {"culprit": culprit, "what": what})

    def _fail(self, rank: int, first: Message) -> None:
        self.announce(first["culprit"], first["what"])
        said = self._last_words(rank) | {rank: first}
        culprit = next((r for r, message in said.items() if message["culprit"] == r), None)
        if culprit is None:
            culprit = first["culprit"]
            said.setdefault(culprit, self._end_of(culprit))
        ordered = {r: said[r]["error"] for r in sorted(said, key=lambda r: r != culprit)}
        trace = said[culprit].get("traceback")
        cause = RemoteTraceback(trace) if trace else None
        raise LiveError(ordered, culprit, said[culprit]["what"]) from cause

    def _end_of(self, rank: int) -> Message:
        """The assumed report of a rank that did not send one."""
        process = self.processes[rank]
        if rank in self._is_done:
            what = "left"
        elif process.poll() is None:
            what = "is stopped" if _is_stopped(process.pid) else "is alive, but slow or elsewhere"
        elif process.returncode < 0:
            what = f"was killed by {signal.Signals(-process.returncode).name}"
        else:
            what = f"exited early with status {process.returncode}"
        return {"error": f"rank {rank} (pid {process.pid}) {what}", "culprit": rank, "what": what}

    def _start(self, rank: int, prints: bool) -> None:
        here, there = socket.socketpair()
        self._sockets.append(here)
        with there:
            # Not 0 to 2, which a socket may get where they are closed: those become the rank's own.
            channel = fcntl.fcntl(there, fcntl.F_DUPFD_CLOEXEC, 3)
        try:
            # A session of its own: ctrl-C in a terminal is for the launcher, whose end ends the
            # rank. Safe path: a random.py in the user's folder must not be imported by the rank.
            self.processes.append(subprocess.Popen(
                [sys.executable, "-m", "towpath.collectives.live_rank", str(channel),
                 str(rank)],
                start_new_session=True, env={**os.environ, "PYTHONSAFEPATH": "1"},
                stdin=subprocess.DEVNULL, stdout=None if prints else _standard_error(),
                pass_fds=[channel],
            ))  # fmt: skip
        finally:
            os.close(channel)

    def _send(self, rank: int, message: Any) -> None:
        end = self._sockets[rank]
        end.settimeout(_SEND_S)
        with contextlib.suppress(OSError):  # it has ended already; messages() will tell
            end.sendall(framed(message))
        end.setblocking(False)

    def _read(self, rank: int, *, is_last: bool) -> tuple[list[Message], bool]:
        """The messages that have arrived, and True if the rank's end is closed."""
        messages: list[Message] = []
        while True:
            try:
                piece = self._sockets[rank].recv(_CHUNK_BYTES)
            except BlockingIOError:
                return messages, False
            except OSError:
                piece = b""
            if not piece:
                return messages, True
            messages += self._readers[rank].feed(piece)
            if not is_last:
                return messages, False


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] in "Tt"
    except OSError:
        return False


def _standard_error() -> int:
    """The descriptor of standard error, or of a null device if standard error is closed."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2
